# frozen_string_literal: true

# `rake spec:gc_stress` runs these with a collection at every allocation, so that an object which only memprof
# holds, or which is not whole yet, meets the collector at the worst moment. In the plain suite they run
# without, to stay right.
RSpec.describe "memprof under GC stress", :gc_stress do
  # In a child with little on its heap, where a collection is quick: RubyGems alone would double its time.
  # Stress begins when all is loaded. `stress` is a value of GC.stress=: 1 is a minor collection, which frees
  # young objects as well.
  def stressed(code, stress: true)
    result = run_ruby(<<~RUBY, ruby_args: ["--disable=gems"], timeout: 1800)
      require "memprof"
      require "stringio"
      require "tmpdir"
      Memprof.report { "warm" }.to_s
      Memprof.growth(times: 4, warmup: 1) { "warm" }.to_s
      GC.stress = ENV["GC_STRESS"] ? #{stress} : false
      #{code}
      GC.stress = false
      puts "done"
    RUBY
    expect(result.stderr).to eq("")
    expect(result).to be_success
    expect(result.stdout.lines.last).to eq("done\n")
    result.stdout.lines[0...-1].map(&:chomp)
  end

  it "counts what lives" do
    expect(stressed(<<~RUBY)).to include(match(/\A +20 -e:\d+:Object\z/)).and(include("stopped true"))
      Memprof.start
      kept = Array.new(20) { Object.new }
      30.times { "dropped" }
      Memprof.stats($stdout)
      puts "stopped \#{Memprof.stop}"
    RUBY
  end

  it "finds the peak of memory" do
    expect(stressed(<<~RUBY)).to eq(["true"])
      report = Memprof.report(peak: true) { Array.new(30) { |number| "x" * 4000 } }
      puts report.peak[:bytes] > 0
    RUBY
  end

  # No JSON: Ruby 4.0's own generator (json 2.18) does not survive this.
  it "reports, presents and exports" do
    lines = stressed(<<~RUBY)
      kept = nil
      report = Memprof.report(stack: 4) { kept = Array.new(10) { |number| [number.to_s] } }
      report.sites.each(&:to_h)
      puts report.total_retained, report.to_s.include?("Retained")
      Dir.mktmpdir do |directory|
        %i[markdown collapsed speedscope pprof].each { |format| report.write("\#{directory}/report", format: format) }
      end
    RUBY
    expect(lines.first.to_i).to be >= 20
    expect(lines.last).to eq("true")
  end

  it "counts objects by class" do
    expect(stressed(<<~RUBY)).to eq(["20"])
      Article = Class.new
      kept = Array.new(20) { Article.new }
      puts Memprof.count_objects(Article)["user_types"]["Article"]
    RUBY
  end

  it "samples" do
    expect(stressed(<<~RUBY).last.to_i).to be_between(1, 400)
      Memprof.start(sample: 4)
      kept = Array.new(100) { Object.new }
      out = StringIO.new
      Memprof.stats(out)
      Memprof.stop
      puts out.string[/(\\d+) \\S+:Object$/, 1]
    RUBY
  end

  # It allocates 30,000 objects of its own: with major collections, that takes two minutes.
  it "finds what grows" do
    expect(stressed(<<~RUBY, stress: 1)).to eq(["true"])
      kept = []
      puts Memprof.growth(times: 5, warmup: 1) { kept << Object.new }.grows?
    RUBY
  end

  it "keeps the threads apart" do
    expect(stressed(<<~RUBY)).to eq(%w[5 7])
      counts = [5, 7].map do |number|
        Thread.new do
          out = StringIO.new
          kept = nil
          Memprof.track(out, scope: :thread) { kept = Array.new(number) { Object.new } }
          out.string[/(\\d+) \\S+:Object$/, 1]
        end
      end
      puts counts.map(&:value)
    RUBY
  end

  it "follows objects that move" do
    expect(stressed(<<~RUBY)).to eq(["true"])
      Memprof.start
      kept = Array.new(20) { Object.new }
      GC.compact
      out = StringIO.new
      Memprof.stats(out)
      Memprof.stop
      puts out.string.match?(/^ +20 \\S+:Object$/)
    RUBY
  end

  it "distinguishes anonymous classes, also those that are freed or move" do
    expect(stressed(<<~RUBY)).to eq(["[nil, 0, 0, 0, 1]"])
      session = Memprof::Session.prepare(scope: :thread, identities: true)
      parent = Class.new(Array)
      session.open
      Class.new(Array).new
      3.times { Class.new(parent).new }
      lasting = Class.new(parent)
      lasting.new
      session.finish
      GC.compact
      numbers = session.counts.map { |_, (*, number)| number }.compact.sort
      native = Memprof.module_eval("Native", __FILE__, __LINE__)
      p numbers.map { |number| native.nearest_class(number, [parent, lasting], false) }
      session.close
    RUBY
  end

  it "distinguishes what threads allocate under their marks" do
    expect(stressed(<<~RUBY)).to eq(["[8, true, true]"])
      native = Memprof.module_eval("Native", __FILE__, __LINE__)
      session = Memprof::Session.prepare
      session.open
      native.mark(7)
      kept = Array.new(20) { Object.new }
      Thread.new { kept.concat(Array.new(10) { Object.new }) }.join
      native.mark(8)
      more = Array.new(5) { Object.new }
      before = native.mark(0)
      session.finish
      GC.compact
      retained = native.marks(session.id).to_h { |mark, _, (objects, _)| [mark, objects] }
      session.close
      p [before, retained[7].between?(30, 80), retained[8].between?(5, 20)]
    RUBY
  end
end
