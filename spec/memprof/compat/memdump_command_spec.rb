# frozen_string_literal: true

require "fileutils"
require "json"
require "memprof/heap"
require "tmpdir"

RSpec.describe "memprof subset" do
  include HeapDumps

  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let(:set) { Memprof::Heap.open(cache_dump).subset }
  let(:sessions) { set.objects_of_class("Session") }
  let(:session) { sessions.addresses.first }

  after { FileUtils.rm_rf(directory) }

  def answer(*arguments)
    stdout, stderr, status = run_memprof("subset", *arguments, cache_dump, "-f", "json")
    expect([stderr, status.exitstatus]).to eq(["", 0])
    JSON.parse(stdout, symbolize_names: true)
  end

  it "counts the set by class, and prints the steps to it" do
    steps = ["--class", "/^Sess/", "--where", "type = object"]
    stdout, stderr, status = run_memprof("subset", *steps, cache_dump)
    expect(stdout).to eq(<<~TEXT)
      1,000 objects
      Objects  Class
        1,000  Session

      Steps: class: 1,000 objects, where: 1,000 objects.
    TEXT
    expect([stderr, status.exitstatus]).to eq(["", 0])
  end

  it "takes each step that a Subset has" do
    chosen = "class = Session"
    store = set.parents_of(sessions).first
    {
      ["--class", "Session"] => sessions, ["--type", "STRING"] => set.objects_of_type("STRING"),
      ["--where", chosen] => sessions, ["--subgraph-of", session] => set.subgraph_of(session),
      ["--depth", "1", "--subgraph-of", session] => set.subgraph_of(session, max_depth: 1),
      ["--root-of", session] => set.root_of(session), ["--roots-of", chosen] => set.roots_of(sessions),
      ["--parents-of", chosen] => store, ["--parents-of", chosen, "--min-references", "5000"] => [],
      ["--common-ancestors", chosen] => set.common_ancestors(sessions),
      ["--reachable-from", chosen] => set.reachable_from(sessions),
      ["--remove-node", session] => set.remove_node(session), ["--without", chosen] => set.without(sessions),
      ["--collapse", chosen] => set.collapse(sessions), ["--cleanup"] => set.common_cleanup,
      ["--small", "2"] => set.remove_small_components(max_size: 2), ["--roots"] => set.roots,
      ["--random", "1.0"] => set, ["--random", "0"] => [], ["--class-references"] => set, ["--valid"] => set
    }.each { |steps, expected| expect([steps, answer(*steps)[:objects]]).to eq([steps, expected.size]) }
    later = answer("--diff", cache_dump(2), "--class", "Session")
    expect(later[:objects]).to eq(set.diff(Memprof::Heap.open(cache_dump(2)).subset)
      .objects_of_class("Session").size)
  end

  it "does the steps in their order" do
    expect(answer("--class", "Session", "--without", "class = Session")[:objects]).to eq(0)
    expect(answer("--without", "class = Session", "--class", "Session")[:steps].map { |step| step[:objects] })
      .to eq([set.size - 1000, 0])
  end

  it "lists where references that are not valid led to" do
    _, missing = sessions.remove_invalid_references
    expect(missing.size).to be > 1000
    expect(answer("--class", "Session", "--valid")[:missing]).to eq(missing)
    stdout, = run_memprof("subset", "--class", "Session", "--valid", cache_dump)
    expect(stdout).to match(/references to [\d,]+ missing addresses: 0x\h+, 0x/)
  end

  it "lists objects by their references" do
    rows = answer("--out-degree", "--min-references", "900", "--limit", "2")
    expected = set.out_degree(min: 900)
    expect(rows[:rows].first).to include(count: expected.values.max)
    expect(rows[:rows].size + rows[:more]).to eq(expected.size)
  end

  it "writes GML and dumps" do
    gml = File.join(directory, "sessions.gml")
    _, stderr, status = run_memprof("subset", "--roots-of", "class = Session", cache_dump, gml)
    size = Memprof::Units.objects(set.roots_of(sessions).size)
    expect([stderr, status.exitstatus]).to eq(["memprof: #{gml}: #{size}\n", 0])
    expect(File.read(gml)).to start_with("graph\n[\n  directed 1\n")
    labels = File.readlines(gml).grep(/^    label /)
    expect([labels.size, labels.uniq.size]).to eq([set.roots_of(sessions).size] * 2)

    dump = File.join(directory, "sessions.memprof")
    run_memprof("subset", "--class", "Session", cache_dump, dump)
    expect(Memprof::Heap.open(dump).where("class = Session").size).to eq(1000)
    stdout, = run_memprof("subset", "--class", "Session", cache_dump, "-")
    expect(stdout.lines.count { |line| line.include?("\"Session\"") }).to be >= 1000
  end

  it "writes GML that networkx reads as it is" do
    gml = File.join(directory, "sessions.gml")
    set.roots_of(sessions).to_gml(gml)
    python = "import sys\ntry:\n import networkx\nexcept ImportError:\n sys.exit(77)\n" \
             "graph = networkx.read_gml(sys.argv[1])\nprint(graph.number_of_nodes())"
    result = run_command("sh", "-c", 'command -v python3 >/dev/null || exit 77; exec python3 "$@"', "sh",
      "-c", python, gml)
    skip "needs networkx" if result.status.exitstatus == 77
    expect([result.stdout.to_i, result.stderr]).to eq([set.roots_of(sessions).size, ""])
  end

  {
    "an address of nothing" => [%w[--subgraph-of 0x1], /no object has the address 0x1/],
    "no address" => [%w[--root-of here], /"here" is not an object address/],
    "a query that is none" => [["--where", "class =="], /class is a text/],
    "no number" => [%w[--random some], /invalid --random "some"; expected a number/],
    "no regular expression" => [%w[--class /(/], %r{invalid regular expression "/\(/"}],
    "a list for a file" => [%w[--out-degree FILE out.gml], /--out-degree does not take OUT/],
    "a file that is there" => [%w[FILE /etc/hostname], %r{/etc/hostname already exists; use --force}]
  }.each do |situation, (arguments, message)|
    it "says what is wrong: #{situation}" do
      arguments = arguments.include?("FILE") ? arguments : [*arguments, "FILE"]
      arguments = arguments.map { |word| word == "FILE" ? cache_dump : word }
      stdout, stderr, status = run_memprof("subset", *arguments)
      expect([stdout, status.exitstatus]).to eq(["", 2])
      expect(stderr).to match(/\Amemprof: .*#{message}/)
    end
  end
end
