package mongorun;

import engines.Program;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import mongorun.server.Server;

/**
 * {@code MongoRun FOLDER WORD...}: the server of MongoDB's protocol over RocksDB in a folder, and programs on MongoDB's own driver.
 *
 * <pre>
 * steps DOCUMENTS                      each kind of operation beside a model, with a reopen
 * handover DOCUMENTS ROUND             goes on with the documents that the round before left
 * kill DOCUMENTS ROUNDS                kills a server that writes, and checks what it left
 * linkbench OPERATIONS CLIENTS NODES   Linkbench's mix on documents
 * serve PORT [piped]                   serves until it is killed, or with the last word until its standard input ends
 * </pre>
 *
 * {@link Program} says what goes to standard output and to standard error.
 */
public final class MongoRun {
  private MongoRun() {}

  static void say(String line) {
    System.out.println(line);
  }

  public static void main(String[] args) {
    Program.run(args, MongoRun::run);
  }

  private static int run(String[] args) throws Exception {
    Path folder = Path.of(args[0]).toAbsolutePath();
    Files.createDirectories(folder);
    int first = Integer.parseInt(args[2]);
    int differences = switch (args[1]) {
      case "steps" -> new Steps(folder, first).run();
      case "handover" -> Handover.run(folder, first, Integer.parseInt(args[3]));
      case "kill" -> Kill.run(folder, first, Integer.parseInt(args[3]));
      case "linkbench" -> Linkbench.run(folder, first, Integer.parseInt(args[3]), Integer.parseInt(args[4]));
      case "serve" -> serve(folder, first, args.length > 3);
      default -> throw new IllegalArgumentException("no program " + args[1]);
    };
    say("differences from the model: " + differences);
    say("end");
    return differences == 0 ? 0 : 1;
  }

  private static int serve(Path folder, int port, boolean piped) throws Exception {
    try (Server server = new Server(folder, port, false)) {
      say("serves " + server.url());
      System.out.flush();
      if (piped) {
        System.in.transferTo(OutputStream.nullOutputStream());
      } else {
        Thread.currentThread().join();
      }
    }
    return 0;
  }
}
