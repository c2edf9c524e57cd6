# frozen_string_literal: true

# Code that a method evaluates has files and lines of its own. The VM's own backtrace and objspace say which.
RSpec.describe "Evaluated code" do
  # Each allocates one Object, in `keep`, and notes its own backtrace on the same line.
  cases = {
    "eval" => 'eval("\n" * 40 + "keep(Object.new)")',
    "eval with a file" => 'eval("\n\nkeep(Object.new)", binding, "named.rb", 100)',
    "a block in an eval" => 'eval("\n[1].each {\n keep(Object.new) }", binding, "block.rb", 7)',
    "an eval in an eval" =>
      %q{eval("eval('\n\nkeep(Object.new)', binding, 'inner.rb', 5)", binding, "outer.rb", 50)},
    "a rescue in an eval" => 'eval("begin\nraise\nrescue\nkeep(Object.new)\nend", binding, "rescue.rb", 7)',
    "an ensure in an eval" => 'eval("begin\n1\nensure\nkeep(Object.new)\nend", binding, "ensure.rb", 7)',
    "a proc of an eval" => '(@proc ||= eval("\nproc {\nkeep(Object.new) }", binding, "proc.rb", 1)).call',
    "the binding of another method" => 'other.eval("\n\nkeep(Object.new)", "other.rb", 9)',
    "instance_eval" => 'instance_eval("\n\nkeep(Object.new)", "instance.rb", 3)',
    "class_eval" => 'self.class.class_eval("\nCase.new.keep(Object.new)", "class.rb", 3)',
    "a method that is defined in an eval" =>
      'self.class.class_eval("\ndef defined_there\n keep(Object.new)\nend", "def.rb", 3); defined_there',
    "define_method in an eval" =>
      'self.class.class_eval("\ndefine_method(:dynamic) {\n keep(Object.new) }", "define.rb", 3); dynamic',
    "methods of the VM in an eval" =>
      'eval("\n1.times { 1.tap {\n keep(Object.new) } }", binding, "times.rb", 3)',
    "an ERB template" => 'ERB.new("a\n\n<% [1].each do %>\n<% keep(Object.new) %><% end %>").result(binding)',
    "an ERB template with a name" =>
      'ERB.new("a\n<% keep(Object.new) %>").tap { |erb| erb.filename = "page.erb" }.result(binding)'
  }.freeze

  def child(work)
    result = run_ruby(<<~RUBY)
      require "erb"
      require "json"
      require "objspace"
      require "memprof"
      class Case
        def keep(object)
          $kept = object
          $backtrace = caller_locations(1)
        end
        def other = binding
        def run
          #{work}
        end
      end
      frames = lambda do |list|
        list = list.reject { |file, _| file.start_with?("<internal:") || file.include?("lib/memprof") }
        list.chunk_while { |a, b| a == b }.map(&:first)
      end
      one = Case.new
      ObjectSpace.trace_object_allocations { one.run }
      wanted = [ObjectSpace.allocation_sourcefile($kept), ObjectSpace.allocation_sourceline($kept)]
      found = [1, 64].map do |stack|
        report = Memprof.report(stack: stack) { one.run }
        site = JSON.parse(report.to_json)["sites"].find { |row| row["class"] == "Object" }
        stack = site["stack"].map { |frame| frame.match(/\\A(.*?):(\\d+):in /) { |match| [match[1], match[2].to_i] } }
        [site.values_at("file", "line"), stack]
      end
      backtrace = frames.call($backtrace.map { |at| [at.path, at.lineno] })
      puts JSON.generate(leaf: [wanted, *found.map(&:first)], stacks: [backtrace, frames.call(found.last.last)])
    RUBY
    expect(result.stderr).to eq("")
    JSON.parse(result.stdout)
  end

  cases.each do |name, work|
    it "has its own file and line: #{name}" do
      answer = child(work)
      expect(answer["leaf"].drop(1)).to all(eq(answer["leaf"].first))
      backtrace, stack = answer["stacks"]
      # From Ruby 3.4 on backtraces leave out what a rescue stands in.
      stack.delete_at(1) if name.include?("rescue") && RUBY_VERSION >= "3.4"
      expect(stack.first(backtrace.size)).to eq(backtrace)
    end
  end

  it "has the name of its method, whichever method evaluates the same text" do
    result = run_ruby(<<~'RUBY')
      require "memprof"
      class Views
        def first = eval("Object.new", binding, "view.erb", 1)
        def second = eval("Object.new", binding, "view.erb", 1)
      end
      report = Memprof.report { 3.times { Views.new.first }; 5.times { Views.new.second } }
      puts report.sites.select { |site| site.file == "view.erb" && site.class_name == "Object" }
        .map { |site| "#{site.method_name} #{site.allocated_objects}" }.sort
    RUBY
    expect([result.stderr, result.stdout.lines(chomp: true)]).to eq(["", ["Views#first 3", "Views#second 5"]])
  end

  it "keeps its place when iseqs die and the heap is compacted", if: GC.respond_to?(:compact) do
    result = run_ruby(<<~'RUBY')
      require "memprof"
      def evaluate(n) = eval("\n" * (n % 7) + "$kept << Object.new", binding, "file#{n % 11}.rb", 1)
      $kept = []
      Memprof.start(stack: 4)
      3.times do
        500.times { |n| evaluate(n) }
        GC.compact
      end
      session = Memprof.instance_variable_get(:@session)
      rows = session.stats.select { |_, _, _, name| name == "Object" }
      wanted = Array.new(500) { |n| ["file#{n % 11}.rb", n % 7 + 1] }.tally.transform_values { |count| count * 3 }
      puts rows.to_h { |count, file, line, _| [[file, line], count] } == wanted
    RUBY
    expect([result.stderr, result.stdout]).to eq(["", "true\n"])
  end
end

# The VM gives the memory of instructions that are gone to others.
RSpec.describe "Code that comes and goes" do
  between = { "and the collector" => "GC.start if number % 9 == 0", "and compaction" => <<~RUBY }
    if number % 9 == 0
      GC.respond_to?(:compact) ? GC.compact : GC.start
    end
  RUBY
  code = {
    "loaded" => "File.write(file, text); load(file); make",
    "evaluated" => "eval(text, binding, file, line); make",
    "an evaluated block" => 'eval("proc { $kept << Object.new }", binding, file, line).call',
    "a script alone" => "File.write(file, script); load(file)",
    # The method lives, and so does its file's name.
    "evaluated as if it were the method's" => "file = __FILE__; evaluate(script, line)"
  }
  code.to_a.product(between.to_a).each do |(what, run), (with, collect)|
    it "is named by its own file and line: #{what}, #{with}" do
      result = run_ruby(<<~RUBY)
        require "memprof"
        require "tmpdir"
        $kept = []
        text = "def make = $kept << Object.new\n"
        script = "$kept << Object.new\n"
        def evaluate(text, line) = eval(text, binding, __FILE__, line)
        once = lambda do |number|
          file = File.join(Dir.pwd, "code\#{number % 50}.rb")
          line = #{run.include?("line") ? "number % 31 + 1" : "1"}
          #{run}
          #{collect}
          [file, line]
        end
        places = lambda do |session|
          rows = session.stats.select { |*, name| name == "Object" }
          rows.to_h { |count, file, line, _| [[file, line], count] }
        end
        wrong = []
        Dir.mktmpdir do |directory|
          Dir.chdir(directory) do
            # One session for all, whose objects live; then one for each.
            Memprof.start
            expected = Array.new(400) { |number| once.call(number) }.tally
            found = places.call(Memprof.instance_variable_get(:@session))
            Memprof.stop
            wrong << [found, expected] unless found == expected
            200.times do |number|
              Memprof::Session.run(scope: :thread) do |session|
                expected = { once.call(number) => 1 }
                session.finish
                found = places.call(session)
                wrong << [found, expected] unless found == expected
              end
            end
          end
        end
        puts wrong.empty? || wrong.first.inspect
      RUBY
      expect([result.stderr, result.stdout]).to eq(["", "true\n"])
    end
  end

  it "has line 0 if its line is negative" do
    result = run_ruby(<<~'RUBY')
      require "memprof"
      require "memprof/malloc"
      code = "[Object.new,\n 'x' * 9000]"
      report = Memprof.report(stack: 4) { $kept = eval(code, binding, "negative.rb", -5) }
      puts report.sites.select { |site| site.file == "negative.rb" }.map(&:line).uniq
      Memprof::Malloc.start
      $kept = eval(code, binding, "negative.rb", -5)
      Memprof::Malloc.stop
      puts Memprof::Malloc.locations.map(&:name).grep(/negative/).uniq
    RUBY
    expect([result.stderr, result.stdout]).to eq(["", "0\nnegative.rb:0\n"])
  end

  # Ruby 3.1 shows a frame more there. The first stacks are compared with the VM's, and all trusted then.
  [0, 100].each do |before|
    it "calls an extension that allocates while it is loaded, after #{before} stacks" do
      result = run_ruby(<<~'RUBY', args: [before.to_s])
        require "memprof"
        require "stringio"
        Memprof.start(stack: 20)
        Integer(ARGV[0]).times { eval("Object.new", binding, "before.rb", 1) }
        load_it = -> { [1].each { eval("\n[2].each { require 'date_core' }", binding, "outer.rb", 5) } }
        Memprof.report(stack: 20) { load_it.call }.write(stacks = StringIO.new, format: :collapsed)
        frames = stacks.string.lines.grep(/;Class /).flat_map { |line| line.split(";").grep(/:\d+\)/) }
        puts frames.map { |frame| frame[%r{[^/(]+:\d+}] }.grep_v(/memprof/).uniq
      RUBY
      expect(result.stderr).to eq("")
      frames = result.stdout.lines(chomp: true)
      expect(frames.grep_v(/kernel_require|date_core.so/)).to contain_exactly("-e:5", "-e:6", "outer.rb:6")
      expect(result.stdout).not_to include("before.rb")
    end
  end

  # Each name is a file of its own.
  it "takes no more and more memory under ever new names while objects are tracked for good" do
    result = run_ruby(<<~'RUBY', timeout: 600)
      require "memprof"
      require "stringio"
      kept = []
      run = ->(names) do
        names.each do |name|
          object = eval("Object.new", binding, "evaluated-#{name}.rb", 1)
          kept << object if (name % 10_000).zero?
        end
        File.read("/proc/self/statm").split[1].to_i * 4
      end
      Memprof.start
      first = run.call(0...80_000)
      second = run.call(80_000...240_000)
      GC.start
      Memprof.stats(io = StringIO.new)
      found = io.string.scan(/ 1 evaluated-(\d+)\.rb:1:Object$/).flatten.map(&:to_i).sort
      p found == (0...24).map { |name| name * 10_000 }, second - first
    RUBY
    expect(result.stderr).to eq("")
    right, grown = result.stdout.split
    expect(right).to eq("true")
    expect(grown.to_i).to be < 40_000 # KiB; the lines themselves would take 140 MB
  end
end
