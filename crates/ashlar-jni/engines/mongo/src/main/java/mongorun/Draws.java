package mongorun;

import java.util.SplittableRandom;

/** Linkbench's draws: which node or link an operation takes, how many links a node has, and what the data is. */
final class Draws {
  /** The share of operations that choose links by the order that also gives the number of links. */
  private static final double CORRELATED = 0.005;
  /** The published distribution of links: degrees, and the percentage of nodes with at most as many. */
  private static final int[] DEGREES = {0, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100, 200, 500, 1000};
  private static final double[] PERCENTS = {
      45.3316, 77.4626, 86.9581, 91.9931, 94.4508, 95.8281, 97.3201, 98.3280,
      99.0269, 99.3270, 99.5569, 99.7216, 99.8314, 99.8851, 99.9275, 99.9507
  };

  private final SplittableRandom random;
  private final Order links;
  private final Order others;
  private final Order nodes;
  private final int count;
  private final byte[] nodeMotif;
  private final byte[] linkMotif;

  Draws(long seed, int nodes) {
    random = new SplittableRandom(seed);
    count = nodes;
    links = new Order(nodes, 0.8, 1);
    others = new Order(nodes, 0.8, 2);
    this.nodes = new Order(nodes, 0.625, 3);
    nodeMotif = bytes(512, 50, 220);
    linkMotif = bytes(512, 32, 100);
  }

  /** A number that differs from its neighbours in all bits. */
  static long mixed(long number) {
    long z = (number + 1) * 0x9E3779B97F4A7C15L;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  SplittableRandom random() {
    return random;
  }

  /** The first node of a link, from 1. */
  long linked() {
    return 1 + (random.nextDouble() < CORRELATED ? links : others).draw(random.nextDouble());
  }

  /** A node that is read or changed, from 1. */
  long node() {
    return 1 + nodes.draw(random.nextDouble());
  }

  long anyNode() {
    return 1 + random.nextInt(count);
  }

  /** How many links of each of {@code types} the node begins with. */
  int degree(long node, int type, int types) {
    double below = 100.0 * (1 - links.rank((int) node - 1) / (double) count);
    int at = 0;
    while (at < PERCENTS.length - 1 && PERCENTS[at] < below) {
      at++;
    }
    double total = DEGREES[at];
    if (at > 1) {
      double part = Math.min(1, (below - PERCENTS[at - 1]) / (PERCENTS[at] - PERCENTS[at - 1]));
      total = Math.ceil(DEGREES[at - 1] * Math.pow(DEGREES[at] / (double) DEGREES[at - 1], part));
    }
    // A small graph has no room for the largest degrees.
    int capped = (int) Math.min(total, Math.max(1, 961_963L * count / 10_000_000));
    // The public program shares so, which gives some links too many.
    return capped / types + (type < capped - capped / types ? 1 : 0);
  }

  /** A second node, which the link has in about {@code share} of the draws. */
  long second(long first, int degree, double share) {
    return first + random.nextInt(Math.max(1, (int) Math.ceil(degree / share)));
  }

  /** How many links one operation asks for. */
  int several() {
    return (int) Math.min(127, 1 + Math.ceil(Math.log(1 - random.nextDouble()) / Math.log(1 - 0.382)));
  }

  byte[] nodeData() {
    return data(128, 65_536, 0.63, nodeMotif, 50, 220);
  }

  byte[] linkData() {
    return data(8, 254, 0.225, linkMotif, 32, 100);
  }

  /** Data of a length around {@code median}, of pieces that are new with the probability {@code fresh}, and else from the motif. */
  private byte[] data(double median, int most, double fresh, byte[] motif, int from, int to) {
    int length = (int) Math.min(most, Math.round(median * Math.exp(random.nextGaussian())));
    byte[] data = new byte[length];
    for (int at = 0; at < length; at += 128) {
      int piece = Math.min(128, length - at);
      if (random.nextDouble() < fresh) {
        System.arraycopy(bytes(piece, from, to), 0, data, at, piece);
      } else {
        System.arraycopy(motif, random.nextInt(motif.length - piece + 1), data, at, piece);
      }
    }
    return data;
  }

  private byte[] bytes(int length, int from, int to) {
    byte[] bytes = new byte[length];
    for (int at = 0; at < length; at++) {
      bytes[at] = (byte) random.nextInt(from, to + 1);
    }
    return bytes;
  }

  /** Zipf's distribution over ranks, and a permutation of the ranks: residue classes, each rotated. */
  private static final class Order {
    private final int count;
    private final double shape;
    private final double zeta;
    private final int classes;
    private final int[] turns;

    Order(int count, double shape, long seed) {
      this.count = count;
      this.shape = shape;
      double sum = 0;
      for (int rank = 1; rank <= count; rank++) {
        sum += Math.pow(rank, -shape);
      }
      zeta = sum;
      classes = Math.min(1024, count);
      SplittableRandom fixed = new SplittableRandom(seed);
      turns = fixed.ints(classes, 0, count / classes).toArray();
    }

    private int size(int residue) {
      return count / classes + (residue < count % classes ? 1 : 0);
    }

    private int turned(int rank, int by) {
      int residue = rank % classes;
      return residue + classes * Math.floorMod(rank / classes + by, size(residue));
    }

    int rank(int number) {
      return turned(number, -turns[number % classes]);
    }

    int draw(double part) {
      double rest = part * zeta;
      if (rest < 1) {
        return turned(0, turns[0]);
      } else if (rest < 1 + Math.pow(2, -shape)) {
        return turned(1, turns[1]);
      }
      double eta = (1 - Math.pow(2.0 / count, 1 - shape)) / (1 - (1 + Math.pow(2, -shape)) / zeta);
      int rank = (int) Math.min(count - 1, count * Math.pow(eta * part - eta + 1, 1 / (1 - shape)));
      return turned(rank, turns[rank % classes]);
    }
  }
}
