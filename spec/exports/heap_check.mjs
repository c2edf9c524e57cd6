// Loads exports of a heap with the programs that they are for: node heap_check.mjs DIRECTORY
//
// DIRECTORY holds heap.jsonl (what the others have to add up to) and heap.heapsnapshot. Node finds the packages
// of heap_package.json where this file is, so it is copied to where they were installed. Fails with the first difference.
import assert from "node:assert/strict";
import { createReadStream, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

// Node has it from version 22 on.
Promise.withResolvers ??= () => {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
};

const directory = resolve(process.argv[2]);
const file = (name) => join(directory, name);
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const documents = readFileSync(file("heap.jsonl"), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
const objects = documents.filter((document) => document.type !== "root");
const size = sum(objects.map((object) => object.memsize));

// The worker that loads snapshots in DevTools, put together as in its build; only the file that the build makes itself,
// the list of languages, is put in its place.
async function devtools() {
  const { build } = await import("esbuild");
  const worker = "chrome-devtools-frontend/front_end/entrypoints/heap_snapshot_worker";
  const outfile = join(import.meta.dirname, "devtools.mjs");
  await build({
    stdin: {
      contents: `export { HeapSnapshotLoader } from "${worker}/HeapSnapshotLoader.ts";
        export { SecondaryInitManager } from "${worker}/HeapSnapshot.ts";`,
      resolveDir: import.meta.dirname,
      loader: "ts",
    },
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    logLevel: "error",
    plugins: [{
      name: "languages",
      setup(build) {
        build.onResolve({ filter: /^\.\/locales\.js$/ }, ({ path }) => ({ path, namespace: "languages" }));
        build.onLoad({ filter: /.*/, namespace: "languages" }, () => ({
          contents: `export const LOCALES = ["en-US"], BUNDLED_LOCALES = LOCALES, DEFAULT_LOCALE = "en-US",
            REMOTE_FETCH_PATTERN = "", LOCAL_FETCH_PATTERN = "";`,
        }));
      },
    }],
  });
  return import(pathToFileURL(outfile));
}

async function openInDevTools(name) {
  const { HeapSnapshotLoader, SecondaryInitManager } = await devtools();
  const messages = [];
  const loader = new HeapSnapshotLoader({ sendEvent: (event, data) => messages.push(`${event} ${data}`) });
  for await (const chunk of createReadStream(file(name), { encoding: "utf8", highWaterMark: 1 << 20 })) loader.write(chunk);
  loader.close();
  await loader.parsingComplete;
  const { port1, port2 } = new MessageChannel();
  new SecondaryInitManager(port2);
  const snapshot = await loader.buildSnapshot(port1);
  port1.close();
  port2.close();
  return { snapshot, messages };
}

const checks = {
  async heapsnapshot() {
    const { snapshot } = await openInDevTools("heap.heapsnapshot");
    assert.equal(snapshot.totalSize, size);
    const roots = documents.length - objects.length;
    // The root, (GC roots), (unreachable).
    assert.equal(snapshot.nodeCount, documents.length + 3);
    const byId = new Map(objects.map((object) => [Number(BigInt(object._id) >> 3n & 0xffffffffn), object]));
    let compared = 0;
    let named = 0;
    for (let ordinal = roots + 3; ordinal < snapshot.nodeCount; ordinal += 1) {
      const node = snapshot.createNode(ordinal * snapshot.nodeFieldCount);
      const object = byId.get(node.id());
      assert.equal(node.selfSize(), object.memsize, object._id);
      assert.equal(node.retainedSize(), object.retained, object._id);
      assert.equal(node.edgesCount() >= object.references.length, true, object._id);
      if (object.type === "string" && object.data && object.data.length < 60) {
        assert.equal(node.name(), object.data);
        named += 1;
      }
      compared += 1;
    }
    assert.equal(compared, objects.length);
    assert.ok(named > 0);
    const rows = Object.values(snapshot.aggregatesWithFilter({}));
    assert.equal(sum(rows.map((row) => row.self)), size);
    return `ok: ${compared} objects, ${rows.length} groups`;
  },
};

for (const [name, check] of Object.entries(checks)) {
  console.log(`${basename(directory)} ${name}: ${(await check()) ?? "ok"}`);
}
