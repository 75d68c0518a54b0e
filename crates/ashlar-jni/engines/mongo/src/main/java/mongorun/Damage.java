package mongorun;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Changes bytes of documents in tables. The server opens: it reads the lists of collections before them and the indexes after them. */
final class Damage {
  private Damage() {}

  static void bytes(Path folder) throws IOException {
    List<Path> tables;
    try (Stream<Path> files = Files.list(folder)) {
      tables = files.filter(file -> file.toString().endsWith(".sst")).toList();
    }
    if (tables.isEmpty()) {
      throw new IllegalStateException("no tables in " + folder);
    }
    for (Path table : tables) {
      try (RandomAccessFile file = new RandomAccessFile(table.toFile(), "rw")) {
        for (long at = file.length() / 10; at < file.length() / 6; at += 500) {
          file.seek(at);
          int before = file.read();
          file.seek(at);
          file.write(before ^ 0x55);
        }
      }
    }
  }
}
