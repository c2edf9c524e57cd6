# frozen_string_literal: true

# A Ractor that is freed: up to Ruby 3.4 the VM then turns all hooks off (Bug #19112). Before 3.1.4 it crashes
# where a Ractor starts while objects are hooked (Bug #18464), so there are no hooks then.
RSpec.describe "Tracking beside Ractors that end" do
  # Several, of threads that are gone: one may seem to be held by what is left on a stack.
  let(:freed) { <<~RUBY.tr("\n", ";") }
    10.times do
      Thread.new { Ractor.new { 1 }.then { |made| made.respond_to?(:value) ? made.value : made.take } }.join
      GC.start
    end
  RUBY

  it "warns once what is missing, and continues" do
    result = run_ruby(<<~RUBY, ruby_args: ["-W:no-experimental"])
      require "memprof"
      Memprof.start
      #{freed}
      3.times { GC.start }
      lost = Array.new(1000) { Object.new }
      2.times { Memprof.stats(File::NULL) }
      found = Array.new(1000) { Object.new }
      require "stringio"
      Memprof.stats(text = StringIO.new)
      puts text.string[/ 1000 \\S+:(\\d+):Object/, 1], Memprof.running?
    RUBY
    lost = "turned tracking off when a Ractor was freed (Bug #19112"
    lost = "crashes where a Ractor starts" if RUBY_VERSION < "3.1.4"
    warnings = result.stderr.lines.select { |line| line.include?(lost) }
    if RUBY_VERSION < "4"
      expect(warnings.size).to eq(1)
      expect(result.stdout).to eq("7\ntrue\n")
    else
      expect(warnings).to eq([])
    end
  end

  it "marks the report" do
    result = run_ruby(<<~RUBY, ruby_args: ["-W:no-experimental"])
      require "memprof"
      report = Memprof.report do
        #{freed}
        3.times { GC.start }
        Array.new(1000) { Object.new }
      end
      puts report.meta["incomplete"].inspect, report.to_s.include?("incomplete: tracking was off")
      puts Memprof.report { Object.new }.meta.key?("incomplete")
    RUBY
    expected = RUBY_VERSION < "4" ? "true\ntrue\nfalse\n" : "nil\nfalse\nfalse\n"
    expect(result.stdout).to eq(expected)
  end

  # Also from Ractors, and in a TracePoint.
  {
    "a session" => "Memprof.start",
    "a session that samples" => "Memprof.start(sample: 1000)",
    "a trace" => "Memprof::Trace.new.start",
    "a trace of collections" => "Memprof::Trace.new(:thread, %i[gc]).start"
  }.each do |name, start|
    it "lets Ractors start beside #{name}", if: RUBY_VERSION < "3.1.4" do
      result = run_ruby(<<~RUBY, ruby_args: ["-W:no-experimental"])
        require "memprof"
        #{start}
        def traced = nil
        started = 0
        point = TracePoint.new(:call) { started += Ractor.new { 1 }.take }
        point.enable(target: method(:traced)) { traced } unless #{name.include?("collections")}
        ended = 50.times.sum do
          Array.new(10_000) { Object.new }
          Memprof.stats(File::NULL) if Memprof.running?
          Ractor.new { Ractor.new { Array.new(100) { Object.new }.size }.take }.take
        end
        p ended, started, Memprof.stop
      RUBY
      expect(result.status.exitstatus).to eq(0)
      traced = name.include?("trace")
      expect(result.stdout).to eq("5000\n#{name.include?("collections") ? 0 : 1}\n#{!traced}\n")
    end
  end

  it "refuses to start beside a Ractor with which Ruby may crash, and records again when it has ended",
    if: RUBY_VERSION < "3.1.4" do
    result = run_ruby(<<~RUBY, ruby_args: ["-W:no-experimental"])
      require "memprof"
      ractor = Ractor.new { Ractor.receive }
      begin
        Memprof.start
      rescue Memprof::Unsupported => e
        puts e.message
      end
      ractor.send(1)
      ractor.take
      Thread.pass until Ractor.count == 1
      p Memprof.report { Array.new(1000) { Object.new } }.total_allocated >= 1000
    RUBY
    expect(result.stdout).to match(/Bug #18464.* when no Ractor runs\ntrue\n/)
  end
end
