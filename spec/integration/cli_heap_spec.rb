# frozen_string_literal: true

require "json"

RSpec.describe "memprof, asking a dump" do
  include HeapDumps

  def memprof(*arguments, **options)
    run_memprof(*arguments, **options)
  end

  def answer(*arguments)
    stdout, stderr, status = memprof(*arguments, "--format", "json")
    expect([stderr, status.exitstatus]).to eq(["", 0])
    JSON.parse(stdout, symbolize_names: true)
  end

  # Fields of each record of CSV.
  def widths(csv)
    ends = csv.scan(/\G(?:"(?:[^"]|"")*"|[^,"\n]*)([,\n])/).flatten
    ends.slice_after("\n").map(&:size)
  end

  def store
    @store ||= answer("top", "--where", "class = Hash", cache_dump).dig(:objects, 0, :address)
  end

  objects = "retained,percent,size,object,address,site"
  references = "label,object,retained,address,site"
  # Of each verb the arguments, the question that it puts, a line of its text, and the heading of its CSV.
  verbs = {
    "stats" => [[], :overview, /^ *Shallow size +Shallow % +Objects +Type$/, "size,percent,count,type"],
    "leaks" => [[], :leaks, /^1\. 1,000 Session instances retain/,
      "gained,objects,class,holder,site,own,trend,why"],
    "top" => [[], :top, /^ *Retained size +Retained % +Shallow size +Object +Address/, objects],
    "histogram" => [[], :histogram, / 1,000 .* Session/, /\Aretained,percent,count,size,key,then/],
    "query" => [["class = Session"], :top, /\A1,000 matching objects/, objects],
    "show" => [[:store], :object, /^Path from a GC root: Sessions::STORE -> Hash \(1000\)$/, references],
    "path" => [[:store], :path, /^STORE +Hash \(1000\)/, references],
    "tree" => [[], :tree, /^ *[\d.]+ [KM]iB .*Hash \(1000\)/, "retained,percent,count,object,address,site"],
    "dups" => [[], :duplicates, / wasted by .* duplicates among .* strings/,
      /\Awasted,percent,count,length,text,/],
    "slots" => [[], :slots, /^ *Slot size +Pages/, /\Aslot,pages,slots,used,free,fill,/]
  }

  verbs.each do |verb, (arguments, question, text, csv)|
    describe verb do
      let(:command) { [verb, cache_dump, *arguments.map { |word| word == :store ? store : word }] }

      before { needs(question) }

      it "answers as text, with what to do next on stderr" do
        stdout, stderr, status = memprof(*command)
        expect(stdout).to match(text)
        expect(stdout).not_to match(/ $|\e/)
        expect(stderr).to match(/\A\nNext:\n((  memprof \S.*  \S.*\n)+|(  \S.*:\n    memprof \S.*\n)+)\z/)
        expect(status.exitstatus).to eq(0)
      end

      it "answers as JSON, CSV and Markdown, and says nothing else" do
        expect(answer(*command)).to be_a(Hash)
        stdout, stderr, = memprof(*command, "--format", "csv")
        expect(stdout.lines.first.chomp).to match(csv)
        expect(widths(stdout).uniq.size).to eq(1)
        expect(stderr).to eq("")
        stdout, stderr, = memprof(*command, "--format", "markdown")
        expect(stdout).to match(/\A### .+\n\n/)
        expect(stdout).to match(verb == "leaks" ? /^- Retained by: `.+`$/ : /^\| .+ \|\n\|(?: -+:? \|)+$/)
        expect(stderr).to eq("")
      end

      it "says what is wrong with a file in one line" do
        File.write(File.join(HeapDumps.directory, "nonsense.json"), "no dump at all\n")
        { "nowhere.memprof" => /no such file/, HeapDumps.directory => /is a directory/,
          File.join(HeapDumps.directory, "nonsense.json") => /is not a heap dump/ }.each do |file, problem|
          stdout, stderr, status = memprof(command[0], file, *command.drop(2))
          expect(stderr).to match(/\Amemprof: cannot read #{Regexp.escape(file)}: .*#{problem}.*\n\z/)
          expect([stdout, status.exitstatus]).to eq(["", 2])
        end
      end

      it "says what is missing, and what is too much" do
        _, stderr, status = memprof(verb)
        expect(stderr).to match(/\Amemprof: FILE.* is missing; see `memprof help #{verb}`\n\z/)
        expect(status.exitstatus).to eq(2)
        next if verb == "leaks"

        _, stderr, status = memprof(*command, "0x1", "surplus")
        expect(stderr).to match(/\Amemprof: unexpected arguments: .*surplus; see `memprof help #{verb}`\n\z/)
        expect(status.exitstatus).to eq(2)
      end
    end
  end

  describe "leaks" do
    it "says what is large, what retains it and where it was allocated" do
      stdout, = memprof("leaks", cache_dump)
      expect(stdout).to match(/\A\S+: [\d.]+ MiB reachable, \d+ findings?$/)
      expect(stdout).to match(/^1\. 1,000 Session instances retain [\d.]+ [KM]iB \([\d.]+ %\)$/)
      expect(stdout).to match(/^Retained by +Sessions::STORE -> Hash\[\*\]$/)
      expect(stdout).to match(/^Allocated at +\S*heap_cache\.rb:27 in fetch$/)
    end

    it "takes a threshold, and many files" do
      expect(answer("leaks", "--threshold", "90", cache_dump)[:findings]).to eq([])
      _, stderr, status = memprof("leaks", "--threshold", "200", cache_dump)
      expect([stderr[/expected a number above 0 and at most 100/].nil?, status.exitstatus]).to eq([false, 2])
      needs(:diff)
      stdout, = memprof("leaks", cache_dump(1), cache_dump(2), cache_dump(3))
      expect(stdout).to match(/^RSS grew by/) if File.exist?("/proc/self/smaps")
      expect(stdout).to match(/^1\. 4,000 more Session instances retain [\d.]+ [KM]iB$/)
      expect(stdout).to match(/^Retained by +Sessions::STORE -> Hash\[\*\]$/)
      expect(stdout).to match(/^Allocated at +\S*heap_cache\.rb:27 in fetch/)
      finding = answer("leaks", cache_dump(1), cache_dump(2), cache_dump(3))[:findings].first
      expect(finding.values_at(:count, :trend)).to eq([[1000, 3000, 5000], "grows"])
      csv, = memprof("leaks", "--format", "csv", cache_dump(1), cache_dump(3))
      expect(csv.lines[1]).to match(/,4000,Session,Sessions::STORE -> Hash\[\*\],.*,unknown,/)
    end
  end

  describe "path" do
    it "merges the paths to many" do
      needs(:histogram) # filters came with it
      stdout, = memprof("path", cache_dump, "--where", "class = Session")
      expect(stdout).to start_with("Paths to 1,000 objects\n")
      expect(stdout)
        .to match(/^ *1,000 .*  Sessions +1 .*\n *1,000 .*    STORE: Hash +1 .*\n *1,000 .*: Session +1,000 /)
    end

    it "folds a linked list for people only, and counts what its nodes retain once" do
      dump = File.join(Dir.mktmpdir, "list.json")
      run_ruby(<<~RUBY, ruby_args: ["-rmemprof"]).tap { |result| expect(result).to be_success, result.stderr }
        Node = Struct.new(:next)
        $list = 50.times.inject(nil) { |list, _| Node.new(list) }
        Memprof.dump_all(#{dump.dump})
      RUBY
      nodes = answer("query", dump, "class = Node", "--sort", "depth", "--limit", "50")
      deepest = nodes[:objects].first[:address]
      stdout, = memprof("path", dump, deepest)
      expect(stdout).to start_with("$list -> Node.next -> … 48 more Node.next … -> Node\n")
      expect(stdout).to match(/^\$list .*\n\.next +Node .*\n\.next +\.{3} 47 more Node \.{3}\n\.next .*\n*\z/)
      expect(answer("path", dump, deepest)[:steps].size).to eq(51)
      expect(memprof("path", dump, deepest, "--format", "csv").first.lines.size).to eq(52)
      stdout, = memprof("path", dump, "--where", "class = Node")
      expect(stdout).to match(/^ *50 +2\.0 KiB    \$list: Node .*\n *49 .*\.next: Node /)
      expect(stdout).to match(/^ +\.{3} 47 more \.next: Node \.{3}\n *1 +40 B /)
    ensure
      FileUtils.rm_rf(File.dirname(dump))
    end

    it "wants one or the other" do
      _, stderr, status = memprof("path", cache_dump)
      expect([stderr, status.exitstatus])
        .to eq(["memprof: ADDRESS (or --where QUERY) is missing; see `memprof help path`\n", 2])
    end
  end

  describe "show" do
    it "shows everything about an object" do
      stdout, = memprof("show", cache_dump, store, "--limit", "2")
      expect(stdout).to match(/\AHash \(1000\) at #{store}\ntype +hash\nclass +Hash\nlength +1,000\n/)
      expect(stdout).to include("Outgoing references (2,000)\n", "... 1,998 more objects (--limit N)\n")
      expect(stdout).to match(/^Retains [\d.]+ [KM]iB\nShallow size  Objects  Class$/)
    end

    it "refuses what is not an address, and an address without an object" do
      messages = { "Session" => /"Session" is not an object address/,
                   "0x3" => /no object has the address 0x3/ }
      messages.each do |address, problem|
        stdout, stderr, status = memprof("show", cache_dump, address)
        expect(stderr).to match(/\Amemprof: .*#{problem}.*\n\z/)
        expect([stdout, status.exitstatus]).to eq(["", 2])
      end
    end
  end

  describe "tree" do
    it "takes the objects of a class as one" do
      stdout, = memprof("tree", cache_dump, store, "--by", "class")
      expect(stdout).to match(/^ *Retained size +Retained % +Objects +Class +Largest/)
      expect(stdout)
        .to match(/^ *[\d.]+ [KM]iB .+ % +1,000  Session .*\n.* 1,000    Array .*\n.* 10,000      String/)
    end

    it "is as deep and as wide as is wanted" do
      tree = answer("tree", cache_dump, "--depth", "1", "--limit", "2", "--min-size", "1KB")
      expect(tree[:branches].map { |branch| branch[:branches] }).to eq([[], []])
    end
  end

  describe "histogram" do
    before { needs(:histogram) }

    it "groups by one thing, then by another" do
      stdout, = memprof("histogram", cache_dump, "--by", "class", "--then", "line", "--where",
        "class = Session")
      expect(stdout).to match(/^ *Retained size .* Class, then Allocated at/)
      expect(stdout).to match(/^.* 1,000 .*  Session .*\n.* 1,000 .*heap_cache.rb:27/)
    end

    it "sorts, limits, and computes exactly" do
      groups = answer("histogram", cache_dump, "--sort", "name", "--limit", "3", "--exact")
      keys = groups[:rows].map { |row| row[:key] }
      expect([keys, keys.size, groups[:exact]]).to eq([keys.sort, 3, true])
    end

    it "shows ten rows of each level of a tree, and three of other groups within groups" do
      rows = ->(*options) do
        answer("histogram", cache_dump, *options)[:rows].map { |row| row[:rows].to_a.size }
      end
      expect(rows.call("--by", "namespace").max).to be_between(4, 10)
      expect(rows.call("--then", "line").max).to eq(3)
    end

    it "refuses an unknown group" do
      _, stderr, status = memprof("histogram", cache_dump, "--by", "colour")
      expect(stderr).to match(/\Amemprof: invalid --by "colour"; expected one of: class, type, file, .*\n\z/)
      expect(status.exitstatus).to eq(2)
    end
  end

  describe "query" do
    before { needs(:top) }

    it "lists what meets a condition, in the order that is wanted" do
      query = "class = String and length > 100"
      rows = answer("query", cache_dump, query, "--sort", "length", "--limit", "5")
      lengths = rows[:objects].map { |row| row[:value] }
      expect(lengths).to eq(lengths.sort.reverse)
      stdout, = memprof("query", cache_dump, "class = String", "--sort", "length", "--limit", "1")
      expect(stdout).to match(/ Length /)
    end

    it "shows the spot of a mistake" do
      stdout, stderr, status = memprof("query", cache_dump, "class = Session and retaned > 1KiB")
      expect([stdout, status.exitstatus]).to eq(["", 2])
      expect(stderr.lines.first).to eq("memprof: unknown field \"retaned\"; did you mean retained?\n")
      next if stderr.lines.size == 1 # an older extension says no more

      expect(stderr.lines.drop(1).join).to eq("class = Session and retaned > 1KiB\n#{" " * 20}^^^^^^^\n")
    end
  end

  describe "top" do
    it "lists procs by where they were written" do
      needs(:procs)
      dump = heap_dump("callbacks.memprof", "heap_callbacks.rb")
      stdout, = memprof("top", "--procs", dump, "--limit", "1")
      expect(stdout).to match(/^ *[\d.]+ MiB +[\d.]+ % +2,000  .*heap_callbacks.rb:33  body: String, feed/)
      expect(stdout).to include("$driver -> Driver@waiting")
      _, stderr, status = memprof("top", "--procs", "--sort", "depth", dump)
      expect([stderr,
        status.exitstatus]).to eq([
          "memprof: invalid --sort \"depth\" with --procs; expected one of: retained, size\n", 2
        ])
    end
  end

  describe "dups" do
    it "looks at collections, too" do
      needs(:collections)
      stdout, = memprof("dups", "--collections", cache_dump, "--sort", "unused")
      expect(stdout).to match(/^Type +Objects +Shallow size +Elements +Empty/).and match(/^By unused$/)
      _, stderr, status = memprof("dups", "--sort", "unused", cache_dump)
      expect([stderr, status.exitstatus]).to eq(["memprof: --sort needs --collections\n", 2])
    end
  end

  describe "stats" do
    it "sums up a dump" do
      needs(:overview)
      stdout, = memprof("stats", cache_dump)
      expect(stdout)
        .to match(/\A.*cache-1.memprof: [\d,]+ objects, [\d.]+ MiB\nDump +binary, written .* UTC\n/)
      expect(stdout).to match(/^Counts\n\d+ classes, /)
    end
  end

  describe "diff" do
    before { needs(:diff) }

    it "prints what is new, what survived, and what references it" do
      stdout, = memprof("diff", cache_dump(1), cache_dump(2), cache_dump(3))
      expect(stdout).to start_with("RSS ") if File.exist?("/proc/self/smaps")
      expect(stdout).to match(/^\+[\d.]+ [KM]iB and \+[\d,]+ objects: from .* to .*\n/)
      expect(stdout).to match(/^ *\+[\d.]+ [KM]iB +\+2,000 +2,000 +0 +2,000 .* Session$/)
      expect(stdout).to match(/^\d+ unchanged rows not shown\.$/)
      # But for what the machine stack may hold, too.
      new = /2[78],\d{3}/
      expect(stdout).to match(/^ *[\d.]+ MiB +#{new} +#{new} +String +Sessions::STORE -> Hash \(3000\) +0x/)
    end

    it "compares two versions of a program" do
      versions = [1, 2].map { |version| heap_dump("version-#{version}.memprof", "heap_versions.rb", version) }
      stdout, = memprof("diff", *versions)
      expect(stdout).to match(/^ *\+390\.6 [KM]iB +\+5,000 .* TaggedProduct$/)
      expect(stdout).not_to include("Old objects")
    end

    it "shows the growth in each of more than three dumps, and else what three show" do
      dumps = [1, 2, 3].map { |number| cache_dump(number) }
      three, four = [dumps, [dumps.first, *dumps]].map do |files|
        JSON.parse(memprof("diff", "--limit", "50", "--format", "json", *files).first)
      end
      rows = four["rows"]["rows"].to_h { |row| [row["class"], row.delete("series")] }
      expect(four).to eq(three)
      expect(rows["Session"].map { |sum| sum["count"] }).to eq([0, 0, 2000, 4000])
      change = three["rows"]["rows"].find { |row| row["class"] == "Session" }["reachable"]
      expect(rows["Session"][2]).to eq(change)

      stdout, = memprof("diff", dumps.first, *dumps)
      expect(stdout).to match(/^Growth by dump: 0, 0, \+[\d.]+ [KM]iB, \+[\d.]+ [KM]iB\.$/)
      expect(stdout).to match(/  Over the dumps  Class$.*  (▁▁▄█|__=#) +Session$/m)
      stdout, = memprof("diff", "--format", "csv", dumps.first, *dumps)
      expect(stdout).to match(/,series,key$.*,0 0 80000 160000,Session$/m)
    end

    it "wants two dumps" do
      _, stderr, status = memprof("diff", cache_dump)
      expect([stderr, status.exitstatus]).to eq(["memprof: AFTER is missing; see `memprof help diff`\n", 2])
    end
  end

  describe "export" do
    around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

    it "takes the format from the ending, and leaves what is there" do
      needs(:export)
      { "heap.heapsnapshot" => /\A\{"snapshot"/, "heap.gml" => /^graph\n\[/, "heap.dot" => /\Adigraph/,
        "heap.csv" => /\Aid,/, "heap.html" => /<html/, "heap.folded" => /;.* \d+$/ }.each do |out, content|
        _, stderr, status = memprof("export", cache_dump, out, "--limit", "50")
        expect(stderr).to match(/\Amemprof: #{out}: \d+ objects/)
        expect(status.exitstatus).to eq(0)
        expect(File.read(out)).to match(content)
      end
      _, stderr, status = memprof("export", cache_dump, "heap.dot")
      expect(stderr).to eq("memprof: heap.dot already exists; use --force to replace it\n")
      expect(status.exitstatus).to eq(2)
      stdout, = memprof("export", cache_dump, "-", "--format", "objects-csv", "--limit", "3")
      expect(stdout.lines.size).to eq(4)
    end

    it "has the names of Memprof::Heap#export" do
      require "memprof/cli"
      names = Memprof::CLI::Export::FORMATS.keys.map(&:to_s)
      native = Memprof.send(:const_get, :Native)
      expect(names).to match_array(native::Heap.export_formats.map(&:first))
    end

    it "refuses an ending that says nothing, and a directory that is not there" do
      { "heap.xyz" => /unknown file extension ".xyz"; expected one of: .heapsnapshot/,
        "no/heap.dot" => %r{cannot write OUT no/heap.dot: no such directory} }.each do |out, problem|
        _, stderr, status = memprof("export", cache_dump, out)
        expect(stderr).to match(/\Amemprof: #{problem}.*\n\z/)
        expect(status.exitstatus).to eq(2)
      end
    end
  end

  describe "console" do
    it "opens a console with the heap" do
      skip("needs irb") unless Gem::Specification.any? { |gem| gem.name == "irb" }

      input = "heap.ask(:leaks)[:findings].size + 100\n"
      stdout, stderr, status = memprof("console", cache_dump, input: input,
        env: { "HOME" => HeapDumps.directory })
      expect(stdout.lines.first).to match(/\A10\d\n/)
      expect(stderr).to match(/\Aheap is .*cache-1.memprof; try puts heap\./)
      expect(status.exitstatus).to eq(0)
    end
  end

  describe "output" do
    it "ends quietly if its reader goes away" do
      result = run_command("sh", "-c", '"$@" 2>&1 | head -1', "sh", RbConfig.ruby, "-I#{ChildRuby::LIB}",
        File.join(ChildRuby::ROOT, "exe/memprof"), "tree", cache_dump, "--limit", "5000", "--format", "json")
      expect(result.stdout).to eq("{\n")
    end

    it "leaves no index where none is wanted" do
      copy = File.join(HeapDumps.directory, "copy.memprof")
      FileUtils.cp(cache_dump, copy)
      memprof("leaks", copy, "--no-index")
      expect(Dir["#{copy}*"]).to eq([copy])
      memprof("leaks", copy, "--ignore-stack-roots")
      expect(Dir["#{copy}*"].size).to be > 1
    end
  end

  it "writes answers to a file" do
    Dir.mktmpdir do |directory|
      file = File.join(directory, "answer")
      [%w[leaks], %w[stats --json], %w[histogram --format csv], ["diff", cache_dump]].each do |verb|
        printed = memprof(*verb, cache_dump).stdout
        stdout, stderr, status = memprof(*verb, cache_dump, "--output", file)
        expect([stdout, stderr[/^memprof:.*/], status.exitstatus]).to eq(["", nil, 0])
        expect(File.read(file)).to eq(printed)
      end
      expect(memprof("subset", cache_dump, "#{file}.json", "-o", file).stderr)
        .to eq("memprof: give OUT or --output, not both\n")
      expect(memprof("leaks", cache_dump, "-o", "/nowhere/x").stderr)
        .to eq("memprof: cannot write --output /nowhere/x: no such directory: /nowhere\n")
    end
  end
end
