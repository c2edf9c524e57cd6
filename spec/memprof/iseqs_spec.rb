# frozen_string_literal: true

require "json"
require "objspace"
require "stringio"
require "tmpdir"

RSpec.describe Memprof::Iseqs do
  rows = [
    ["/srv/shop/app/steps.rb", "step_1", "step_1", 12, 1, 2000],
    ["/srv/shop/app/steps.rb", "block in step_1", "step_1", 12, 2, 1500],
    ["/srv/shop/app/steps.rb", "<main>", nil, 1, 1, 1000],
    ["/usr/lib/ruby/gems/3.4.0/gems/rack-3.1.0/lib/rack.rb", "call\n\e[31m", "call\n\e[31m", 7, 1, 500],
    *(2..5).map { |number| ["/srv/shop/app/steps.rb", "step_#{number}", "step_#{number}", 12, 1, 100] },
    [nil, nil, nil, 0, 1, 40]
  ]

  let(:iseqs) { described_class.new(rows) }

  # What is compiled, and when, is exact only in a process of its own.
  def in_child(code)
    result = run_ruby("require \"memprof\"\nrequire \"objspace\"\nrequire \"json\"\n#{code}", timeout: 300)
    expect(result.stderr).to eq ""
    expect(result).to be_success
    result.stdout.lines(chomp: true)
  end

  describe "the heap's" do
    it "are as many as ObjectSpace.count_imemo_objects says, with the bytes that a dump says" do
      expect(in_child(<<~'RUBY')).to eq %w[same same same]
        file = File.open(File::NULL, "w")
        require "tempfile"
        check = lambda do
          GC.start
          GC.disable
          iseqs = Memprof.iseqs
          count = ObjectSpace.count_imemo_objects[:imemo_iseq]
          dump = Tempfile.create.tap { |file| File.unlink(file) }
          ObjectSpace.dump_all(output: dump)
          dump.rewind
          lines = dump.each_line.grep(/"imemo_type":"iseq"/)
          bytes = lines.sum { |line| line[/"memsize":(\d+)/, 1].to_i }
          GC.enable
          [count, bytes, lines.size] == [iseqs.count, iseqs.memsize, count] ? "same" : [count, bytes, iseqs].inspect
        end
        check.call
        puts check.call
        eval("def once; [1].map { |n| [n].map { n } }; end")
        puts check.call
        GC.compact if GC.respond_to?(:compact)
        puts check.call
      RUBY
    end

    it "are two more, and larger, when two were compiled, and no object is made of them" do
      expect(in_child(<<~'RUBY')).to eq ["2", "true", "0"]
        wrappers = -> { ObjectSpace.each_object(RubyVM::InstructionSequence).count }
        GC.disable
        binding.eval("1.times { 1 }")
        Memprof.iseqs
        before = Memprof.iseqs
        binding.eval("1.times { 2 }")
        after = Memprof.iseqs
        puts after.count - before.count, after.memsize > before.memsize, wrappers.call
      RUBY
    end

    it "have the size, file, line and names that Ruby says" do
      path = File.join(__dir__, "iseqs_spec.rb")
      method = described_class.instance_method(:by)
      code = RubyVM::InstructionSequence.of(method)
      entry = Memprof.iseqs.find { |found| found.label == code.label && found.file == code.path }
      expect([entry.line, entry.method_name, entry.count]).to eq [code.first_lineno, "by", 1]
      expect(entry.memsize).to eq ObjectSpace.memsize_of(code)
      labels = Memprof.iseqs.select { |found| found.file == path }.map(&:label)
      expect(labels).to include("block (2 levels) in <top (required)>", "in_child").or include("in_child")
    end

    it "name 10,000 methods that were generated, with the place that generated them" do
      lines = in_child(<<~'RUBY')
        Steps = Module.new
        before = Memprof.iseqs(gc: true)
        10_000.times do |number|
          Steps.module_eval("def step_#{number}(order) = order.update(step: #{number})", "steps.rb", 42)
        end
        iseqs = Memprof.iseqs(gc: true)
        leak = iseqs.by(:location).first
        puts leak.name, leak.count, leak.entries.map(&:method_name).uniq.size
        puts leak.memsize == iseqs.memsize - before.memsize || [leak.memsize, iseqs.memsize - before.memsize].inspect
        puts iseqs.by(:method).count { |group| group.name.match?(/\Astep_\d+\z/) }
        puts leak.memsize.fdiv(iseqs.memsize) > 0.5
        puts iseqs
      RUBY
      expect(lines.values_at(0, 1, 2, 4, 5)).to eq ["steps.rb:42", "10000", "10000", "10000", "true"]
      expect(lines.grep(/10,000  step_\d+, step_\d+, step_\d+ and 9,997 more +steps\.rb:42/).size).to eq 1
    end

    it "include those that are half built, while code is compiled and after that failed" do
      expect(in_child(<<~'RUBY')).to eq %w[true ok]
        require "memprof/everything" # else a warning about code that is loaded would call what it is loaded for
        seen = []
        Warning.singleton_class.define_method(:warn) { |*, **| seen << Memprof.iseqs.count }
        $VERBOSE = true
        eval("def twice(n) = case n when 1 then 2 when 1 then [3].map { 4 } end", binding, "warned.rb", 1)
        binary = RubyVM::InstructionSequence.compile("def a; [1].each { |b| p b }; end; class B; def c = 1; end").to_binary
        whole = RubyVM::InstructionSequence.load_from_binary(binary)
        ["break", "def x; [1].each { redo; retry }; end", "next; yield"].each do |code|
          eval(code)
        rescue SyntaxError
          seen << Memprof.iseqs.count
        end
        puts seen.all?(&:positive?)
        Memprof.iseqs.to_json
        puts "ok"
      RUBY
    end

    it "survive code that is loaded while others look, and a collection at every allocation" do
      expect(in_child(<<~'RUBY')).to eq ["done"]
        threads = Array.new(3) { |id| Thread.new { 200.times { |n| eval("def m#{id}_#{n}(a, b: 1) = [a].map { b }") } } }
        20.times { Memprof.iseqs.count; Thread.pass }
        threads.each(&:join)
        Memprof.iseqs.to_s
        GC.stress = 1 # minor collections: a major one for each of some ten thousand objects takes its time
        eval("def stressed(a) = [a].map { |b| b + 1 }")
        count = Memprof.iseqs.count
        GC.stress = false
        puts count > 1000 ? "done" : count
      RUBY
    end

    it "can be counted after a collection" do
      lines = in_child(<<~'RUBY')
        500.times { |n| eval("-> { #{n} }") }
        puts Memprof.iseqs(gc: true).by(:file).find { |group| group.name.start_with?("(eval") }&.count.to_i < 50
      RUBY
      expect(lines).to eq ["true"]
    end
  end

  it "is enumerated by entry, and counts what entries stand for" do
    expect(iseqs.map(&:line).first(3)).to eq [12, 12, 1]
    expect(iseqs.each.size).to eq 9
    seen = []
    expect(iseqs.each { |entry| seen << entry }).to equal iseqs
    expect(seen).to eq iseqs.entries
    expect([iseqs.count, iseqs.memsize]).to eq [10, 5440]
    expect(iseqs.count { |entry| entry.line == 12 }).to eq 6
    expect(iseqs.count(iseqs.first)).to eq 1
  end

  it "groups by file, method, label and location, most bytes first" do
    expect(iseqs.by(:file).map(&:to_h).first).to eq(name: "/srv/shop/app/steps.rb", count: 8, memsize: 4900)
    expect(iseqs.by("method").map(&:name).first(2)).to eq ["step_1", "(no method)"]
    expect(iseqs.by(:label).map(&:name).first(2)).to eq ["step_1", "block in step_1"]
    expect(iseqs.by(:location).map(&:name).last).to eq "(no name):0"
    expect(iseqs.by(:location).first.entries.map(&:count)).to eq [1, 2, 1, 1, 1, 1]
    expect { iseqs.by(:colour) }
      .to raise_error(ArgumentError, "unknown key :colour; expected one of: file, method, label, location")
  end

  it "has entries that are facts" do
    entry = iseqs.first
    expect(entry).to eq described_class.new(rows).first
    expect(entry).to be_frozen
    expect(entry.to_h).to eq(file: "/srv/shop/app/steps.rb", line: 12, label: "step_1", method: "step_1",
      count: 1, memsize: 2000)
    expect(entry.inspect).to eq "#<Memprof::Iseqs::Entry /srv/shop/app/steps.rb:12 step_1: 1 of 2000 bytes>"
    expect(iseqs.by(:label).first.inspect).to eq "#<Memprof::Iseqs::Group step_1: 1 of 2000 bytes>"
    expect(iseqs.inspect).to eq "#<Memprof::Iseqs 10 of 5440 bytes>"
  end

  it "prints tables that no name can tear" do
    expect("#{iseqs}\n#{iseqs.to_s(limit: 1)}").to match_snapshot("iseqs")
    expect(iseqs.to_markdown(limit: 2)).to match_snapshot("iseqs.md")
    expect(iseqs.to_s(color: true)).to include("\e[1m10 instruction sequences, 5.3 KiB\e[0m")
    expect { iseqs.to_s(limit: 0) }.to raise_error(ArgumentError, /limit must be a positive Integer, not 0/)
  end

  it "is written as text, JSON and Markdown" do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "iseqs")
      iseqs.write(path, format: :json)
      json = JSON.parse(File.read(path), symbolize_names: true)
      expect(json.slice(:format, :version, :count, :memsize))
        .to eq(format: "memprof-iseqs", version: 1, count: 10, memsize: 5440)
      expect(json[:entries].size).to eq 9
      iseqs.write(path, format: "markdown", limit: 1)
      expect(File.read(path)).to eq iseqs.to_markdown(limit: 1)
    end
    out = StringIO.new
    iseqs.write(out)
    expect(out.string).to eq iseqs.to_s
    expect { iseqs.write(out, format: :pprof) }
      .to raise_error(ArgumentError, "unknown format :pprof; expected one of: text, json, markdown")
  end
end
