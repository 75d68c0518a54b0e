package sparkrun;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.streaming.ListState;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import scala.Tuple2;
import scala.Tuple4;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** A value, a list and a map per key. Spark keeps each kind in a column family, and appends to lists by merging. */
final class Processor extends StatefulProcessor<Long, Tuple4<Long, Long, Long, Long>, String> {
  private static final long serialVersionUID = 1;
  private transient ValueState<Long> count;
  private transient ListState<Long> ids;
  private transient MapState<Long, Long> sums;

  @Override
  public void init(OutputMode mode, TimeMode time) {
    count = getHandle().getValueState("count", Encoders.LONG(), TTLConfig.NONE());
    ids = getHandle().getListState("ids", Encoders.LONG(), TTLConfig.NONE());
    sums = getHandle().getMapState("sums", Encoders.LONG(), Encoders.LONG(), TTLConfig.NONE());
  }

  @Override
  public Iterator<String> handleInputRows(Long key, Iterator<Tuple4<Long, Long, Long, Long>> rows, TimerValues timers) {
    List<Tuple4<Long, Long, Long, Long>> sorted = new ArrayList<>(CollectionConverters.asJava(rows.toSeq()));
    sorted.sort((a, b) -> Long.compare(a._1(), b._1()));
    for (Tuple4<Long, Long, Long, Long> row : sorted) {
      count.update((count.exists() ? count.get() : 0) + 1);
      ids.appendValue(row._1());
      sums.updateValue(row._4(), (sums.containsKey(row._4()) ? sums.getValue(row._4()) : 0) + row._1());
      if (row._1() % 50 == 7) {
        sums.removeKey(row._4());
        ids.put(new Object[] {row._1()});
      }
    }
    List<Long> list = new ArrayList<>();
    ids.get().foreach(one -> list.add((Long) one));
    Map<Long, Long> map = new TreeMap<>();
    for (Iterator<Tuple2<Long, Long>> all = sums.iterator(); all.hasNext();) {
      Tuple2<Long, Long> one = all.next();
      map.put(one._1(), one._2());
    }
    return CollectionConverters.asScala(List.of(key + ": " + count.get() + " " + list + " " + map).iterator());
  }
}
