package mongorun.server;

import de.bwaldvogel.mongo.backend.KeyValue;
import de.bwaldvogel.mongo.backend.Missing;
import de.bwaldvogel.mongo.backend.Utils;
import de.bwaldvogel.mongo.bson.Decimal128;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.bson.ObjectId;
import de.bwaldvogel.mongo.wire.bson.BsonDecoder;
import de.bwaldvogel.mongo.wire.bson.BsonEncoder;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;

/**
 * Documents as BSON, and the values in keys of indexes. Within a type the keys are in the order of the values:
 *
 * <pre>
 * | 1: null or missing |
 * | 2: number      | its bits as a double, in the order of the doubles (8) | a long minus its double (8) |
 * | 3: text        | UTF-8, a zero as 00 FF | 00 00 |
 * | 4: object id   | its bytes (12) |
 * | 5: truth value | 0 or 1 |
 * | 6: time        | milliseconds (8) |
 * | 7: other types | BSON, a zero as 00 FF | 00 00 |, in no order
 * </pre>
 */
final class Values {
  private Values() {}

  static byte[] encode(Document document) {
    ByteBuf buffer = Unpooled.buffer(256);
    BsonEncoder.encodeDocument(document, buffer);
    byte[] bytes = new byte[buffer.readableBytes()];
    buffer.readBytes(bytes);
    return bytes;
  }

  static Document decode(byte[] bytes) {
    return BsonDecoder.decodeBson(Unpooled.wrappedBuffer(bytes));
  }

  static byte[] key(KeyValue values) {
    byte[][] parts = values.stream().map(Values::key).toArray(byte[][]::new);
    return Bytes.join(parts);
  }

  static byte[] key(Object value) {
    byte[] start = start(value);
    if (Missing.isNullOrMissing(value)) {
      return start;
    } else if (value instanceof Number number) {
      return Bytes.join(start, Bytes.of(beside(number) ^ Long.MIN_VALUE));
    }
    return ends(start[0]) ? Bytes.join(start, new byte[2]) : start;
  }

  /** The key without what ends it: all keys of this value begin so, and the keys of larger values of its type are larger. */
  static byte[] start(Object value) {
    if (Missing.isNullOrMissing(value)) {
      return new byte[] {1};
    } else if (value instanceof Number number) {
      return Bytes.join(new byte[] {2}, Bytes.of(ordered(number.doubleValue())));
    } else if (value instanceof String text) {
      return escaped(3, text.getBytes(StandardCharsets.UTF_8));
    } else if (value instanceof ObjectId id) {
      return Bytes.join(new byte[] {4}, id.toByteArray());
    } else if (value instanceof Boolean truth) {
      return new byte[] {5, (byte) (truth ? 1 : 0)};
    } else if (value instanceof Instant time) {
      return Bytes.join(new byte[] {6}, Bytes.of(time.toEpochMilli() ^ Long.MIN_VALUE));
    }
    return escaped(7, encode(new Document("", value)));
  }

  /** Whether a query for this value finds only documents that have an entry for it. */
  static boolean isScalar(Object value) {
    boolean isNumber = value instanceof Number number && !Double.isNaN(number.doubleValue());
    return isNumber || value instanceof String || value instanceof ObjectId || value instanceof Boolean || value instanceof Instant;
  }

  /** Whether the keys around this value are in the order in which queries compare. The queries compare texts by their UTF-16 units. */
  static boolean isOrdered(Object value) {
    return isScalar(value) && !(value instanceof String text && text.chars().anyMatch(unit -> unit >= Character.MIN_SURROGATE));
  }

  /** The values of a document that an index found, or if arrays among them are empty, one with null for each of these arrays. */
  static Set<KeyValue> orWithoutArrays(Set<KeyValue> found, Document document, List<String> fields) {
    if (!found.isEmpty()) {
      return found;
    }
    List<Object> values = new ArrayList<>();
    for (String field : fields) {
      Object value = Utils.getSubdocumentValueCollectionAware(document, field);
      values.add(value instanceof Collection || value instanceof Missing ? null : value);
    }
    return Set.of(new KeyValue(values));
  }

  private static boolean ends(byte type) {
    return type == 3 || type == 7;
  }

  private static long ordered(double number) {
    long bits = Double.doubleToLongBits(number == 0 ? 0.0 : number);
    return bits < 0 ? ~bits : bits ^ Long.MIN_VALUE;
  }

  private static long beside(Number number) {
    if (number instanceof Double || number instanceof Decimal128) {
      return 0;
    }
    return number.longValue() - (long) number.doubleValue();
  }

  private static byte[] escaped(int type, byte[] bytes) {
    ByteArrayOutputStream out = new ByteArrayOutputStream(bytes.length + 1);
    out.write(type);
    for (byte each : bytes) {
      out.write(each);
      if (each == 0) {
        out.write(0xFF);
      }
    }
    return out.toByteArray();
  }

  static long position(byte[] bytes, int at) {
    return ByteBuffer.wrap(bytes).getLong(at);
  }
}
