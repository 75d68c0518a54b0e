package flinkrun;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/** State with a time to live: expired entries and elements leave RocksDB in a compaction. The clock is that of {@link ClockedBackend}. */
final class Ttl {
  private static final long OLD = 1000;
  private static final long NEW = 500;
  private static final long MILLIS = 5000;
  private static final List<String> LINES = new CopyOnWriteArrayList<>();

  private Ttl() {}

  static void run(Cluster cluster, Consumer<String> say) throws Exception {
    LINES.clear();
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(cluster.configuration);
    env.setParallelism(1);
    // Old records, a step of the clock, new records, the compactions.
    env.fromSource(new NumberSequenceSource(0, OLD + NEW + 1), WatermarkStrategy.noWatermarks(), "numbers")
        .keyBy(number -> number < OLD ? number : number - OLD - 1, Types.LONG)
        .process(new Expiring())
        .sinkTo(new DiscardingSink<>());
    cluster.finish(cluster.start(env.getStreamGraph().getJobGraph()));
    LINES.forEach(say);
  }

  private static final class Expiring extends KeyedProcessFunction<Long, Long, String> {
    private static final long serialVersionUID = 1;
    private transient ValueState<String> value;
    private transient ListState<Long> fixed;
    private transient ListState<String> texts;
    private transient MapState<String, Long> map;
    private transient List<StateDescriptor<?, ?>> all;

    @Override
    public void open(OpenContext context) {
      StateTtlConfig ttl = StateTtlConfig.newBuilder(Duration.ofMillis(MILLIS)).cleanupInRocksdbCompactFilter(100).build();
      ValueStateDescriptor<String> ofValue = new ValueStateDescriptor<>("value", Types.STRING);
      ListStateDescriptor<Long> ofFixed = new ListStateDescriptor<>("fixed", Types.LONG);
      ListStateDescriptor<String> ofTexts = new ListStateDescriptor<>("texts", Types.STRING);
      MapStateDescriptor<String, Long> ofMap = new MapStateDescriptor<>("map", Types.STRING, Types.LONG);
      all = List.of(ofValue, ofFixed, ofTexts, ofMap);
      all.forEach(one -> one.enableTimeToLive(ttl));
      value = getRuntimeContext().getState(ofValue);
      fixed = getRuntimeContext().getListState(ofFixed);
      texts = getRuntimeContext().getListState(ofTexts);
      map = getRuntimeContext().getMapState(ofMap);
    }

    @Override
    public void processElement(Long number, Context context, Collector<String> out) throws Exception {
      if (number == OLD) {
        step();
      } else if (number == OLD + NEW + 1) {
        compact();
      } else {
        write(number < OLD ? "old" : "new", number);
      }
    }

    /** Says what is there while nothing has expired, so that no compaction has removed anything; then all of it expires. */
    private void step() throws Exception {
      Backend backend = new Backend(getRuntimeContext());
      for (StateDescriptor<?, ?> state : all) {
        LINES.add("ttl: " + state.getName() + " has " + backend.sizes(state.getName()));
      }
      LINES.add("ttl: entries " + backend.entries());
      ClockedBackend.CLOCK.addAndGet(MILLIS);
    }

    private void write(String age, long number) throws Exception {
      // Values are written for old keys without a new record too, so that a half of the keys expires as a whole.
      value.update(age + number);
      for (int at = 0; at < 3; at++) {
        fixed.add(number * 10 + at);
        texts.add(age + " text " + "x".repeat(at) + number % 7);
      }
      map.put(age, number);
      map.put("both", number);
    }

    private void compact() throws Exception {
      Backend backend = new Backend(getRuntimeContext());
      for (StateDescriptor<?, ?> state : all) {
        backend.compact(state);
        LINES.add("ttl: " + state.getName() + " has after the compaction " + backend.sizes(state.getName()));
      }
      LINES.add("ttl: entries after compactions " + backend.entries());
      // The current key is the last one: one behind the new keys, whose old state has expired.
      List<String> seen = new ArrayList<>();
      texts.get().forEach(seen::add);
      LINES.add("ttl: key " + NEW + " reads " + value.value() + ", " + seen + ", " + map.get("both"));
    }
  }
}
