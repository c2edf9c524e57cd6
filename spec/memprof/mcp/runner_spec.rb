# frozen_string_literal: true

require "memprof/mcp"
require "tmpdir"

RSpec.describe Memprof::MCP::Runner do
  include HeapDumps

  around { |example| Dir.mktmpdir { |directory| (@directory = directory) && example.run } }

  let(:dump) { cache_dump(3) }

  def call(name, arguments = {}, **options)
    described_class.new(@directory, **options).call(name, arguments)
  end

  def text(...) = call(...)[:content].first[:text]

  def calls(text) = text.scan(/^\{"tool".*$/).map { |line| JSON.parse(line) }

  it "describes each tool by a schema, and which ones change something" do
    tools = described_class.new(@directory).list
    names = tools.map { |tool| tool[:name] }
    expect(names).to include("processes", "verdict", "histogram", "path", "query", "memory", "boot")
    expect(tools).to all(include(title: /\S/, description: /\.\z/, annotations: include(readOnlyHint: true)))
    tools.each do |tool|
      schema = tool[:inputSchema]
      expect(schema).to include(type: "object", additionalProperties: false)
      expect(schema.fetch(:required, []) - schema[:properties].keys).to eq([])
      expect(schema[:properties].values).to all(include(description: /\S/))
    end
    changing = described_class.new(@directory, allow: true).list
      .reject { |tool| tool[:annotations][:readOnlyHint] }.map { |tool| tool[:name] }
    expect(changing).to eq(%w[verdict run_boot run dump attach])
  end

  it "gives the verdict on dumps as `memprof leaks` does" do
    answer = call("verdict", { "targets" => [1, 2, 3].map { |number| cache_dump(number) } })
    said = answer[:content].first[:text]

    expect(said).to match(/^1\. 4,000 more Session instances retain /)
    expect(said).to match(/^Allocated at +\S*heap_cache\.rb:27 in fetch$/)
    expect(calls(said).first).to include("tool" => "object", "arguments" => include("file" => cache_dump(3)))
    expect(answer[:structuredContent][:answer][:findings].first).to include(class: "Session")
  end

  it "answers each next call that an answer names" do
    seen = []
    left = [["verdict", { "targets" => [dump] }], ["histogram", { "file" => dump }],
      ["query", { "file" => dump, "query" => "class = Session" }], ["memory", { "target" => dump }]]
    while (name, arguments = left.shift)
      next if seen.include?([name, arguments]) || seen.size > 12

      seen << [name, arguments]
      answer = call(name, arguments)
      expect(answer[:isError]).to be(false), answer[:content].first[:text]
      left.concat(calls(answer[:content].first[:text]).map { |one| one.values_at("tool", "arguments") })
    end
    expect(seen.map(&:first).uniq).to include("object", "top", "path")
  end

  it "shows rows in parts" do
    first = text("query", { "file" => dump, "query" => "class = Session", "limit" => 2 })
    expect(first).to include("4,998 more objects (call query with offset: 2)")
    second = text("query", { "file" => dump, "query" => "class = Session", "limit" => 2, "offset" => 2 })
    addresses = [first, second].map { |part| part[/~~~.*~~~/m].scan(/0x\h+/) }
    expect(addresses.map(&:size)).to eq([2, 2])
    expect(addresses.flatten.uniq.size).to eq(4)
    groups = text("histogram", { "file" => dump, "limit" => 3 })
    expect(groups).to include("groups (call histogram with limit: 12)")
    wide = text("query", { "file" => dump, "query" => "type = string", "limit" => 500 })
    expect(wide.bytesize).to be <= Memprof::MCP::Answer::BYTES
    expect(wide).to match(/^\.\.\. \d+ more rows: call query with limit: 250$/)
  end

  it "shows values only if the server and the call say so" do
    arguments = { "file" => dump, "query" => 'type = string and value ~ "/page/"' }
    expect(text("query", arguments)).to match(/^0 matching objects/)
    refused = text("query", arguments.merge("values" => true))
    expect(refused).to match(/shows no values.*`memprof mcp --show-contents`/)
    expect(text("query", arguments, values: true)).to match(/^0 matching objects/)
    shown = text("query", arguments.merge("values" => true), values: true)
    expect(shown).to match(%r{^50,001 matching objects.*String "/page/}m)
    everything = %w[verdict histogram path].map do |name|
      arguments = { "file" => dump, "targets" => [dump], "where" => "class = Session" }
      text(name, arguments.slice(*Memprof::MCP::Tools.find(name).parameters.map(&:name)))
    end
    expect(everything.join).not_to include("visitor-", "/page/")
  end

  it "quotes nothing of a file that is not a dump" do
    File.write(path = File.join(@directory, "secrets.env"), "TOKEN=4711\n")
    [{}, { "values" => true }].product([["top", "file", path], ["memory", "target", path],
      ["verdict", "targets", [path]], ["boot", "file", path]]).each do |more, (name, key, value)|
      more = {} unless Memprof::MCP::Tools.find(name).parameter("values")
      answer = call(name, { key => value }.merge(more), values: true)
      expect(answer[:isError]).to be(true)
      expect(answer[:content].first[:text]).not_to include("4711")
    end
  end

  it "writes nothing beside the dump" do
    copy = File.join(Dir.mkdir(beside = File.join(@directory, "beside")) && beside, "heap.memprof")
    FileUtils.cp(dump, copy)
    call("histogram", { "file" => copy })
    expect(Dir.children(beside)).to eq(["heap.memprof"])
  end

  it "refuses running processes and commands, and says how they are allowed" do
    refused = {
      "verdict" => { "targets" => [Process.pid.to_s] }, "dump" => { "pid" => 1 }, "attach" => { "pid" => 1 },
      "run" => { "command" => ["true"] }, "run_boot" => { "command" => ["true"] }
    }
    refused.each do |name, arguments|
      answer = call(name, arguments)
      expect([name, answer[:isError], answer[:content].first[:text]])
        .to match([name, true, /start it as `memprof mcp --allow`\.\z/])
    end
  end

  it "says what is wrong with arguments, and takes no value for an option" do
    File.mkfifo(fifo = File.join(@directory, "fifo"))
    wrong = {
      ["histogram", {}] => "file is missing",
      ["histogram", { "file" => dump, "colour" => 1 }] => /\Aunknown argument "colour"; known: file, by, /,
      ["histogram", { "file" => dump, "by" => "smell" }] => /\Aby must be one of: class, type/,
      ["histogram", { "file" => dump, "limit" => 0 }] => "limit must be a whole number of at least 1",
      ["histogram", { "file" => "-" }] => "file must be a text",
      ["histogram", { "file" => fifo }] => "cannot read #{fifo}: not a regular file",
      ["histogram", { "file" => "--output=x" }] => "cannot read --output=x: no such file",
      ["verdict", { "targets" => ["/nowhere"] }] => "cannot read /nowhere: no such file",
      ["query", { "file" => dump, "query" => "tipe = 1" }] => /\Aunknown field "tipe"; did you mean type\?/,
      ["query", { "file" => dump, "query" => "--output=stolen" }] => /\A(?!.*unknown option)/,
      ["path", { "file" => dump }] => /ADDRESS \(or --where QUERY\) is missing/,
      ["histogram", { "file" => __FILE__ }] => /\Acannot convert #{__FILE__}: /
    }
    wrong.each do |(name, arguments), message|
      answer = call(name, arguments)
      expect([answer[:isError], answer[:content].first[:text]]).to match([true, message])
    end
    expect(File.exist?("stolen")).to be(false)
  end

  it "lists the Ruby processes of this user, but not itself" do
    skip "needs /proc" unless File.directory?("/proc/self")
    live_program do |program|
      answer = call("processes", { "limit" => 1000 })
      pids = answer[:content].first[:text][/~~~.*~~~/m].scan(/^ *\S+ \S?i?B +(\d+) /).flatten.map(&:to_i)
      expect(pids).to include(program.pid)
      expect(pids).not_to include(Process.pid)
    end
  end

  it "shows a recorded boot" do
    file = { name: "a.rb", self: { retained_bytes: 2048 }, total: { retained_bytes: 3072 }, seconds: 0.1,
             requires: [{ name: "b\n.rb", self: { retained_bytes: 1024 }, total: { retained_bytes: 1024 },
                          seconds: 0.05, requires: [] }] }
    boot = { format: "memprof-boot", version: 1, seconds: 0.2, rss: 10, boot: file.merge(requires: [file]),
             total: { retained_bytes: 4096, retained_objects: 12 }, after_boot: [],
             gems: [file.except(:requires).merge(name: "shop")] }
    path = File.join(@directory, "boot.json")
    File.write(path, JSON.generate(boot))
    said = text("boot", { "file" => path })
    expect(said).to match(/^4\.0 KiB in 12 objects; 200\.?\d* ms$.*shop$.*a\.rb$.*b\\n\.rb$/m)
    File.write(path, "{}")
    expect(text("boot", { "file" => path })).to eq("#{path} is not a recorded boot")
  end
end
