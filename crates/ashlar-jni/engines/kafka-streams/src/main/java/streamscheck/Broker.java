package streamscheck;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.Writer;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Time;

/** One broker of Kafka inside this program, with its controller, on free ports of this machine. */
final class Broker implements AutoCloseable {
  private final KafkaRaftServer server;
  private final String servers;

  private Broker(KafkaRaftServer server, String servers) {
    this.server = server;
    this.servers = servers;
  }

  static Broker start(Path directory) throws IOException {
    Files.createDirectories(directory);
    int port = freePort();
    Properties settings = settings(directory, port, freePort());
    Path file = directory.resolve("server.properties");
    try (Writer writer = Files.newBufferedWriter(file)) {
      settings.store(writer, null);
    }
    PrintStream nowhere = new PrintStream(OutputStream.nullOutputStream());
    String[] format = {"format", "-t", Uuid.randomUuid().toString(), "-c", file.toString()};
    if (StorageTool.execute(format, nowhere) != 0) {
      throw new IOException("the directory of the broker cannot be formatted: " + directory);
    }
    KafkaRaftServer server = new KafkaRaftServer(new KafkaConfig(settings), Time.SYSTEM);
    server.startup();
    return new Broker(server, "localhost:" + port);
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    }
  }

  private static Properties settings(Path directory, int port, int controller) {
    Properties settings = new Properties();
    settings.put("process.roles", "broker,controller");
    settings.put("node.id", "1");
    settings.put("controller.quorum.voters", "1@localhost:" + controller);
    settings.put("listeners", "BROKER://localhost:" + port + ",CONTROLLER://localhost:" + controller);
    settings.put("listener.security.protocol.map", "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT");
    settings.put("inter.broker.listener.name", "BROKER");
    settings.put("controller.listener.names", "CONTROLLER");
    settings.put("log.dirs", directory.resolve("logs").toString());
    settings.put("offsets.topic.replication.factor", "1");
    settings.put("offsets.topic.num.partitions", "1");
    settings.put("transaction.state.log.replication.factor", "1");
    settings.put("transaction.state.log.min.isr", "1");
    settings.put("group.initial.rebalance.delay.ms", "0");
    settings.put("log.cleaner.enable", "false");
    return settings;
  }

  String servers() {
    return servers;
  }

  void create(int partitions, String... topics) throws ExecutionException, InterruptedException {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
      List<NewTopic> wanted = new ArrayList<>();
      for (String topic : topics) {
        wanted.add(new NewTopic(topic, partitions, (short) 1));
      }
      admin.createTopics(wanted).all().get();
    }
  }

  /** Sends records; each must reach the log of the broker. */
  void send(List<Application.Input> inputs) throws ExecutionException, InterruptedException {
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", servers, "linger.ms", 20, "acks", "all"));
    try (KafkaProducer<String, String> producer =
        new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
      for (Application.Input input : inputs) {
        sent.add(producer.send(new ProducerRecord<>(input.topic(), null, input.time(), input.key(), input.value())));
      }
      producer.flush();
      for (Future<RecordMetadata> one : sent) {
        one.get();
      }
    }
  }

  /** The values of all records of a topic. */
  List<String> values(String topic, int partitions) {
    List<TopicPartition> parts = new ArrayList<>();
    for (int part = 0; part < partitions; part++) {
      parts.add(new TopicPartition(topic, part));
    }
    List<String> values = new ArrayList<>();
    Map<String, Object> settings = Map.of("bootstrap.servers", servers);
    try (KafkaConsumer<String, String> consumer =
        new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
      consumer.assign(parts);
      consumer.seekToBeginning(parts);
      Map<TopicPartition, Long> ends = consumer.endOffsets(parts);
      while (parts.stream().anyMatch(part -> consumer.position(part) < ends.get(part))) {
        consumer.poll(Duration.ofMillis(200)).forEach(record -> values.add(record.value()));
      }
    }
    return values;
  }

  @Override
  public void close() {
    server.shutdown();
    server.awaitShutdown();
  }
}
