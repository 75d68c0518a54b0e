package flinkrun;

import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.AggregatingState;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReducingState;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Every kind of keyed state, and timers. The last timer of a key emits what all states of the key hold. */
final class States extends KeyedProcessFunction<Long, Long, String> {
  private static final long serialVersionUID = 1;
  /** The end of the input fires it. */
  private static final long LAST = Long.MAX_VALUE - 1;
  /** Timestamps between the timers of a key. */
  private static final long STEP = 1000;
  /** Values that it divides cut the notes to the newest ones. */
  static final long CUT = 16;
  /** So many notes stay. */
  static final int KEPT = 4;
  /** Values with the remainder 1 remove a sum. */
  static final long REMOVE = 32;

  private transient ValueState<Long> count;
  private transient ValueState<Long> fired;
  private transient ListState<String> notes;
  private transient MapState<Integer, Long> sums;
  private transient ReducingState<Long> most;
  private transient AggregatingState<Long, Double> mean;

  @Override
  public void open(OpenContext context) {
    count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
    fired = getRuntimeContext().getState(new ValueStateDescriptor<>("fired", Types.LONG));
    notes = getRuntimeContext().getListState(new ListStateDescriptor<>("notes", Types.STRING));
    sums = getRuntimeContext().getMapState(new MapStateDescriptor<>("sums", Types.INT, Types.LONG));
    most = getRuntimeContext().getReducingState(new ReducingStateDescriptor<>("most", Math::max, Types.LONG));
    TypeInformation<Tuple2<Long, Long>> pair = Types.TUPLE(Types.LONG, Types.LONG);
    mean = getRuntimeContext().getAggregatingState(new AggregatingStateDescriptor<>("mean", new Mean(), pair));
  }

  @Override
  public void processElement(Long number, Context context, Collector<String> out) throws Exception {
    long value = value(number);
    Long before = count.value();
    count.update(before == null ? 1 : before + 1);
    notes.add(note(number, value));
    List<String> kept = new ArrayList<>();
    if (value % CUT == 0) {
      notes.get().forEach(kept::add);
      notes.update(kept.subList(Math.max(0, kept.size() - KEPT), kept.size()));
    }
    Long sum = sums.get(bucket(value));
    sums.put(bucket(value), sum == null ? value : sum + value);
    if (value % REMOVE == 1) {
      sums.remove(removed(value));
    }
    most.add(value);
    mean.add(value);
    context.timerService().registerEventTimeTimer(timer(number));
    context.timerService().registerEventTimeTimer(LAST);
  }

  static long value(long number) {
    return Job.mixed(number) >>> 40;
  }

  static String note(long number, long value) {
    return "note " + number + " of " + value;
  }

  /** The key of the sum that a value goes to. */
  static int bucket(long value) {
    return (int) (value % 8);
  }

  /** The key of the sum that a value removes. */
  static int removed(long value) {
    return (int) (value / 32 % 8);
  }

  static long timer(long number) {
    return (number / STEP + 1) * STEP;
  }

  /** What a key emits at the end. */
  static String row(long key, long count, long fired, List<String> notes, Map<Integer, Long> sums, long most, double mean) {
    return key + ": count " + count + ", fired " + fired + ", notes " + notes + ", sums " + sums + ", most " + most + ", mean " + mean;
  }

  @Override
  public void onTimer(long time, OnTimerContext context, Collector<String> out) throws Exception {
    if (time != LAST) {
      Long before = fired.value();
      fired.update(before == null ? 1 : before + 1);
      return;
    }
    List<String> list = new ArrayList<>();
    notes.get().forEach(list::add);
    Map<Integer, Long> map = new TreeMap<>();
    for (Map.Entry<Integer, Long> entry : sums.entries()) {
      map.put(entry.getKey(), entry.getValue());
    }
    out.collect(row(context.getCurrentKey(), count.value(), fired.value(), list, map, most.get(), mean.get()));
  }

  /** The mean by its sum and count. */
  private static final class Mean implements AggregateFunction<Long, Tuple2<Long, Long>, Double> {
    private static final long serialVersionUID = 1;

    @Override
    public Tuple2<Long, Long> createAccumulator() {
      return Tuple2.of(0L, 0L);
    }

    @Override
    public Tuple2<Long, Long> add(Long value, Tuple2<Long, Long> sum) {
      return Tuple2.of(sum.f0 + value, sum.f1 + 1);
    }

    @Override
    public Double getResult(Tuple2<Long, Long> sum) {
      return (double) sum.f0 / sum.f1;
    }

    @Override
    public Tuple2<Long, Long> merge(Tuple2<Long, Long> a, Tuple2<Long, Long> b) {
      return Tuple2.of(a.f0 + b.f0, a.f1 + b.f1);
    }
  }
}
