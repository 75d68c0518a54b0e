package streamscheck;

import java.util.Collection;

/** What a part checks: a store by its name in lines, the place of its files, and where differences are counted. */
record Subject(Check check, String name, Place place) {
  void same(String what, Object wanted, Object found) {
    check.same(name + ": " + what, wanted, found);
  }

  void fails(String what, Class<? extends Exception> kind, Runnable call) {
    check.fails(name + ": " + what, kind, call);
  }

  /** A line with how many answers there are, and a sum over them. */
  void line(String when, Collection<String> answers) {
    check.line(name + " " + when + ": " + answers.size() + " answers, " + Check.digest(answers));
  }
}
