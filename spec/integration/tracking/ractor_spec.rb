# frozen_string_literal: true

# A Ractor that is freed: up to Ruby 3.4 the VM then turns all hooks off (Bug #19112). Before 3.1.4 it crashes
# where a Ractor starts while objects are hooked (Bug #18464).
RSpec.describe "Tracking beside Ractors that end", if: RUBY_VERSION >= "3.1.4" do
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
    warnings = result.stderr.lines.grep(/turned tracking off when a Ractor was freed \(Bug #19112/)
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
      puts report.meta["incomplete"].inspect, report.to_s.include?("incomplete: Ruby turned tracking off")
      puts Memprof.report { Object.new }.meta.key?("incomplete")
    RUBY
    expected = RUBY_VERSION < "4" ? "true\ntrue\nfalse\n" : "nil\nfalse\nfalse\n"
    expect(result.stdout).to eq(expected)
  end
end
