// Loads exported profiles with the programs that they are for: node check.mjs DIRECTORY
//
// DIRECTORY holds report.json (a report as JSON: what the exports have to add up to) and profile.collapsed,
// profile.speedscope.json, profile.firefox.json, profile.pprof.pb.gz. Node finds the packages of package.json where
// this file is, so it is copied to where they were installed. Fails with the first difference.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { gunzipSync } from "node:zlib";

const require = createRequire(import.meta.url);
const packageFile = (path) => join(import.meta.dirname, "node_modules", path);
const directory = resolve(process.argv[2]);
const read = (name) => readFileSync(join(directory, name));
const json = (name) => JSON.parse(read(name).toString());
const sum = (numbers) => numbers.reduce((total, number) => total + Number(number), 0);

const report = json("report.json");
const expected = {
  "allocated bytes": report.totals.allocated.bytes,
  "allocated objects": report.totals.allocated.objects,
  "retained bytes": report.totals.retained.bytes,
  "retained objects": report.totals.retained.objects,
};
const values = Object.keys(expected).filter((name) => expected[name] > 0);
const classes = new Set(report.sites.map((site) => site.class));

// The release of speedscope is for browsers, so it gets as much of one as it needs to load a file. It cannot draw
// here; the title and the list of profiles show that the file was understood.
async function openInSpeedscope(name) {
  const { JSDOM, VirtualConsole } = await import("jsdom");
  const messages = [];
  const virtualConsole = new VirtualConsole();
  virtualConsole.on("log", (...words) => messages.push(words.join(" ")));
  const { window } = new JSDOM("<!DOCTYPE html><body></body>", {
    url: "http://localhost/#localProfilePath=none.js",
    runScripts: "outside-only",
    pretendToBeVisual: true,
    virtualConsole,
    beforeParse(view) {
      const ignore = () => {};
      view.matchMedia = () => ({ matches: false, addListener: ignore, removeListener: ignore });
      view.Element.prototype.scrollIntoView = ignore;
    },
  });
  const release = packageFile("speedscope/dist/release");
  const script = readdirSync(release).find((file) => /^speedscope-.*\.js$/.test(file));
  window.eval(readFileSync(join(release, script), "utf8"));
  window.speedscope.loadFileFromBase64(name, read(name).toString("base64"));
  for (let tries = 0; tries < 1200 && !window.document.title; tries += 1) {
    await new Promise((done) => setTimeout(done, 25));
  }
  const { title, body } = window.document;
  const text = body.textContent;
  window.close();
  assert.match(title, / - speedscope$/, `speedscope does not open ${name}: ${messages.join("; ")}`);
  return { text, messages: messages.join("; ") };
}

const checks = {
  async collapsed() {
    const lines = read("profile.collapsed").toString().trimEnd().split("\n");
    const stacks = lines.map((line) => line.match(/^(.+) (\d+)$/));
    assert.ok(stacks.every(Boolean), "a line is not `frames weight`");
    assert.equal(sum(stacks.map((stack) => stack[2])), expected["allocated bytes"]);
    const { messages } = await openInSpeedscope("profile.collapsed");
    assert.match(messages, /collapsed stack format/);
  },

  async speedscope() {
    const Ajv = require("ajv");
    const schema = JSON.parse(readFileSync(packageFile("speedscope/dist/release/file-format-schema.json")));
    const ajv = new Ajv({ strict: false, allErrors: true });
    const file = json("profile.speedscope.json");
    assert.ok(ajv.validate(schema, file), ajv.errorsText());
    assert.deepEqual(file.profiles.map((profile) => profile.name), values);
    for (const profile of file.profiles) {
      assert.equal(sum(profile.weights), expected[profile.name], profile.name);
      for (const stack of profile.samples) {
        assert.ok(classes.has(file.shared.frames[stack.at(-1)].name), "the innermost frame is no class");
      }
    }
    const { text } = await openInSpeedscope("profile.speedscope.json");
    for (const name of values) {
      assert.ok(text.includes(name), `speedscope does not list ${name}`);
    }
  },

  // Mozilla's command line of the profiler loads and upgrades files with the code of the web page.
  async firefox() {
    const sessions = mkdtempSync(join(tmpdir(), "memprof-profiler-"));
    const profiler = (...words) => {
      const script = packageFile("@firefox-devtools/profiler-cli/dist/profiler-cli.js");
      const env = { ...process.env, PROFILER_CLI_SESSION_DIR: sessions };
      return execFileSync(process.execPath, [script, ...words], { env, encoding: "utf8", timeout: 60_000 });
    };
    // Its daemon has half a second to start, which a busy machine may not give it.
    const load = (attempts) => {
      try {
        profiler("load", join(directory, "profile.firefox.json"));
      } catch (error) {
        if (attempts === 1 || !String(error.stderr).includes("did not become ready")) throw error;
        load(attempts - 1);
      }
    };
    try {
      load(10);
      const { processes } = JSON.parse(profiler("profile", "info", "--all", "--json"));
      const threads = processes.flatMap((process) => process.threads);
      assert.deepEqual(threads.map((thread) => thread.name), values);
      for (const { name, threadHandle } of threads) {
        const tree = JSON.parse(profiler("thread", "samples-top-down", "--thread", threadHandle, "--json"));
        assert.equal(tree.regularCallTree.totalSamples, expected[name], name);
        assert.equal(tree.weightType, name.endsWith("bytes") ? "bytes" : "samples");
      }
    } finally {
      try {
        profiler("stop", "--all");
      } catch {
        // What failed before is what to report.
      }
      rmSync(sessions, { recursive: true, force: true });
    }
  },

  async pprof() {
    const { Profile } = require("pprof-format");
    const profile = Profile.decode(gunzipSync(read("profile.pprof.pb.gz")));
    const string = (id) => profile.stringTable.strings[Number(id)];
    const types = profile.sampleType.map((type) => `${string(type.type)}/${string(type.unit)}`);
    assert.deepEqual(types, ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"]);
    assert.equal(string(profile.defaultSampleType), "inuse_space");
    const names = ["allocated objects", "allocated bytes", "retained objects", "retained bytes"];
    names.forEach((name, index) => {
      assert.equal(sum(profile.sample.map((sample) => sample.value[index])), expected[name], name);
    });
    const locations = new Set(profile.location.map((location) => Number(location.id)));
    for (const sample of profile.sample) {
      assert.ok(sample.locationId.every((id) => locations.has(Number(id))), "a location is missing");
      assert.equal(string(sample.label[0].key), "class");
      assert.ok(classes.has(string(sample.label[0].str)));
    }
    const { messages } = await openInSpeedscope("profile.pprof.pb.gz");
    assert.match(messages, /pprof/);
  },

  // The original, if Go is installed.
  async "go tool pprof"() {
    let raw;
    try {
      raw = execFileSync("go", ["tool", "pprof", "-raw", join(directory, "profile.pprof.pb.gz")], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
        env: { ...process.env, PPROF_TMPDIR: tmpdir() },
      });
    } catch (error) {
      if (error.code === "ENOENT") return "skipped: no go";
      throw error;
    }
    const rows = [...raw.matchAll(/^ +(\d+) +(\d+) +(\d+) +(\d+): /gm)];
    assert.equal(sum(rows.map((row) => row[1])), expected["allocated objects"]);
    assert.equal(sum(rows.map((row) => row[4])), expected["retained bytes"]);
  },
};

for (const [name, check] of Object.entries(checks)) {
  console.log(`${basename(directory)} ${name}: ${(await check()) ?? "ok"}`);
}
