# frozen_string_literal: true

# memprof called from a Ractor other than the main one.
RSpec.describe "memprof in another Ractor" do
  it "says where it works" do
    calls = [
      "Memprof.start", "Memprof.stop", "Memprof.stats", "Memprof.stats!", "Memprof.track { 1 }",
      "Memprof.report { 1 }", "Memprof.growth { 1 }", "Memprof.dump", "Memprof.dump_all", "Memprof.iseqs",
      "Memprof.memory", "Memprof.count_objects", "Memprof.trace { 1 }", "Memprof::Malloc.start"
    ]
    result = run_ruby(<<~RUBY, args: calls)
      require "memprof"
      require "memprof/malloc"
      ARGV.each do |call|
        ractor = Ractor.new(call) do |code|
          eval(code)
        rescue StandardError => error
          "\#{error.class}: \#{error.message}"
        end
        puts ractor.respond_to?(:value) ? ractor.value : ractor.take
      end
    RUBY
    said = result.stdout.lines(chomp: true)
    expect(said.size).to eq(calls.size)
    expect(said).to all(eq("Memprof::Unsupported: memprof works in the main Ractor only: call it there"))
  end
end
