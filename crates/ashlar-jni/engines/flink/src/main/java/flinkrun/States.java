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
    long value = Job.mixed(number) >>> 40;
    Long before = count.value();
    count.update(before == null ? 1 : before + 1);
    notes.add("note " + number + " of " + value);
    List<String> kept = new ArrayList<>();
    if (value % 16 == 0) {
      notes.get().forEach(kept::add);
      notes.update(kept.subList(Math.max(0, kept.size() - 4), kept.size()));
    }
    int bucket = (int) (value % 8);
    Long sum = sums.get(bucket);
    sums.put(bucket, sum == null ? value : sum + value);
    if (value % 32 == 1) {
      sums.remove((int) (value / 32 % 8));
    }
    most.add(value);
    mean.add(value);
    context.timerService().registerEventTimeTimer((number / STEP + 1) * STEP);
    context.timerService().registerEventTimeTimer(LAST);
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
    out.collect(context.getCurrentKey() + ": count " + count.value() + ", fired " + fired.value() + ", notes " + list + ", sums " + map
        + ", most " + most.get() + ", mean " + mean.get());
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
