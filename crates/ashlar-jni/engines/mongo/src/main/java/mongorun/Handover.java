package mongorun;

import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.Sorts;
import com.mongodb.client.model.Updates;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import mongorun.server.Server;
import org.bson.Document;

/** A collection that each round finds as the round before left it, whichever native half that one ran on. */
final class Handover {
  private final int documents;
  private final TreeMap<Integer, Document> model = new TreeMap<>();

  private Handover(int documents) {
    this.documents = documents;
  }

  static int run(Path folder, int documents, int round) throws Exception {
    Handover handover = new Handover(documents);
    for (int before = 0; before < round; before++) {
      handover.changeModel(before);
    }
    Beside beside = new Beside();
    try (Server server = new Server(folder, 0, false); MongoClient client = MongoClients.create(server.url())) {
      MongoCollection<Document> people = client.getDatabase("handover").getCollection("people");
      handover.compare(beside, "found", people);
      handover.changeModel(round);
      handover.change(round, people);
      handover.compare(beside, "left", people);
    }
    return beside.differences();
  }

  private void changeModel(int round) {
    for (int id = round * documents; id < (round + 1) * documents; id++) {
      model.put(id, Steps.person(id));
    }
    model.keySet().removeIf(id -> id % 7 == round % 7);
    model.values().stream().filter(each -> each.getInteger("_id") % 3 == 0).forEach(each -> {
      each.put("group", each.get("group", Number.class).longValue() + 1);
      each.put("email", "r" + round + "-" + each.getInteger("_id"));
    });
  }

  private void change(int round, MongoCollection<Document> people) {
    people.createIndex(Indexes.ascending("email"), new IndexOptions().unique(true));
    people.createIndex(Indexes.ascending("group"));
    List<Document> more = new ArrayList<>();
    for (int id = round * documents; id < (round + 1) * documents; id++) {
      more.add(Steps.person(id));
    }
    people.insertMany(more);
    people.deleteMany(Filters.mod("_id", 7, round % 7));
    for (Document third : people.find(Filters.mod("_id", 3, 0)).into(new ArrayList<>())) {
      int id = third.getInteger("_id");
      people.updateOne(Filters.eq("_id", id), Updates.combine(Updates.inc("group", 1L), Updates.set("email", "r" + round + "-" + id)));
    }
  }

  private void compare(Beside beside, String when, MongoCollection<Document> people) {
    beside.documents(when, List.copyOf(model.values()), people.find().sort(Sorts.ascending("_id")).into(new ArrayList<>()));
    beside.same(when + ", estimated", (long) model.size(), people.estimatedDocumentCount());
    List<Document> byValue = new ArrayList<>();
    model.values().forEach(each -> byValue.addAll(people.find(Filters.eq("email", each.getString("email"))).into(new ArrayList<>())));
    beside.documents(when + ", by the unique value", List.copyOf(model.values()), byValue);
    beside.documents(when + ", a group", model.values().stream().filter(each -> each.get("group", Number.class).longValue() == 4).toList(),
        people.find(Filters.eq("group", 4)).sort(Sorts.ascending("_id")).into(new ArrayList<>()));
  }
}
