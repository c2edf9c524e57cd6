# frozen_string_literal: true

# Stacks are read only from where they have changed. With MEMPROF_CHECK_STACKS each is compared with one that
# is read whole.
RSpec.describe "Stacks that are read from their first change on" do
  program = File.join(ChildRuby::ROOT, "spec/fixtures/random_stacks.rb")

  def checked(program, records, seed:, calls: 3000, env: {}, ruby_args: [])
    env = { "MEMPROF_CHECK_STACKS" => "1", "RECORDS" => records }.merge(env)
    stdout, stderr, status = run_ruby(program, env: env, args: [seed.to_s, calls.to_s],
      ruby_args: ["-W0", *ruby_args])
    expect([stderr, status.success?]).to eq(["", true]), "#{status}: #{stderr}"
    stdout.split.map(&:to_i)
  end

  %w[objects malloc].each do |records|
    it "are whole in random programs: #{records}" do
      [1, 2, 3].each do |seed|
        compared, wrong = checked(program, records, seed: seed)
        expect([compared > 1000, wrong]).to eq([true, 0]), "seed #{seed}: #{wrong} of #{compared} are wrong"
      end
    end

    it "are whole while the heap is compacted: #{records}" do
      compared, wrong = checked(program, records, seed: 4, env: { "COMPACT" => "1" })
      expect([compared.positive?, wrong]).to eq([true, 0])
    end

    it "are whole in code of a JIT: #{records}" do
      skip "this Ruby has no YJIT" unless run_ruby("RubyVM::YJIT.enabled? or abort",
        ruby_args: ["--yjit"]).success?

      compared, wrong = checked(program, records, seed: 5, ruby_args: ["--yjit", "--yjit-call-threshold=2"])
      expect([compared.positive?, wrong]).to eq([true, 0])
    end

    it "are whole in many threads, also in those that share native threads: #{records}" do
      [{}, ({ "RUBY_MN_THREADS" => "1" } if RUBY_VERSION >= "3.3")].compact.each do |env|
        compared, wrong = checked(program, records, seed: 7, env: { "THREADS" => "8", **env })
        expect([compared.positive?, wrong]).to eq([true, 0]), "#{env}: #{wrong} of #{compared} are wrong"
      end
    end

    it "are whole under GC.stress: #{records}", :gc_stress do
      compared, wrong = checked(program, records, seed: 6, calls: 25, env: { "STRESS" => "1" })
      expect([compared.positive?, wrong]).to eq([true, 0])
    end
  end
end
