# frozen_string_literal: true

# Which objects are sampled must not repeat: not from session to session, nor from process to process.
RSpec.describe "Sampling" do
  # Lines, with how many of their objects were sampled, over many short sessions.
  let(:requests) { <<~'RUBY' }
    require "memprof"
    LINES = 50
    # Blocks with arguments: what a line would allocate besides its one object is allocated before.
    WORK = eval("[" + Array.new(LINES) { "-> { Object.new }" }.join(",\n") + "]", binding, "request.rb", 1)
    WORK.each(&:call)
    def request(seen)
      session = Memprof::Session.prepare(sample: 100).tap(&:open)
      kept = WORK.map(&:call)
      session.finish
      session.stats.each { |count, file, line, name| seen[line - 1] += 1 if name == "Object" && file == "request.rb" }
      session.close
      kept.clear
    end
    def requests(count) = Array.new(LINES, 0).tap { |seen| count.times { request(seen) } }
  RUBY

  it "gives every line of many short sessions its share" do
    result = run_ruby("#{requests}\np requests(4000)")
    expect(result.stderr).to eq("")
    seen = JSON.parse(result.stdout)
    # 40 expected for each line; chi-square is 50 on average with a standard deviation of 10.
    chi_square = seen.sum { |count| (count - 40)**2 / 40.0 }
    expect([seen.min.positive?, chi_square]).to match([true, be < 150])
  end

  it "differs in another process" do
    first, second = Array.new(2) { run_ruby("#{requests}\np requests(300)").stdout }
    expect(first).to match(/\A\[\d/)
    expect(first).not_to eq(second)
  end

  it "differs in forked children" do
    result = run_ruby(<<~RUBY)
      #{requests}
      session = Memprof::Session.prepare(sample: 50).tap(&:open)
      answers = Array.new(2) do
        reader, writer = IO.pipe
        pid = fork { writer.puts requests(300).inspect; writer.close; exit! }
        writer.close
        Process.wait(pid)
        reader.read
      end
      p answers.uniq.size, answers.first.start_with?("[")
    RUBY
    expect([result.stderr, result.stdout]).to eq(["", "2\ntrue\n"])
  end
end
