# frozen_string_literal: true

# A real agent that listens, and a forked worker with a port of its own.
RSpec.describe "An agent that listens" do
  it "serves what it measures, on a port of each process, with counters that only go up" do
    result = run_ruby(<<~'RUBY', timeout: 120)
      require "memprof/agent"
      require "net/http"
      require "zlib"
      Log = Struct.new(:lines) do
        def info(line) = lines << line
        alias_method :warn, :info
      end
      log = Log.new([])
      Memprof::Agent.start(interval: 0.2, listen: "127.0.0.1:0", logger: log, budget: 1)

      def url(log)
        Thread.pass until (line = log.lines.reverse.find { |line| line.include?("listens on http") })
        URI(line[/http\S+/])
      end

      # Waits for an answer that the block accepts. Asking allocates, too, so it does not ask all the time.
      def get(url, path)
        loop do
          answer = Net::HTTP.get_response(url + path)
          return answer if answer.code == "200" && (!block_given? || yield(answer.body))
          sleep(0.05)
        end
      end

      def allocated(body) = body[/^memprof_allocated_bytes_total\S* (\d+)/, 1].to_i

      first = url(log)
      $kept = Array.new(20_000) { |number| number.to_s * 200 }
      puts Zlib.gunzip(get(first, "/debug/pprof/heap").body).include?("inuse_space")
      before = allocated(get(first, "/metrics") { |body| allocated(body).positive? }.body)
      $kept = Array.new(20_000) { |number| number.to_s * 200 }
      after = allocated(get(first, "/metrics") { |body| allocated(body) > before }.body)
      puts after > before
      delta = Thread.new { get(first, "/debug/pprof/allocs?seconds=1").body }
      $kept = Array.new(20_000) { |number| number.to_s * 10 } until delta.join(0.01)
      puts Zlib.gunzip(delta.value).include?("alloc_space")

      reader, writer = IO.pipe
      pid = fork do
        log.lines.clear
        own = url(log)
        body = get(own, "/metrics") { |text| allocated(text).positive? }.body
        writer.puts own.port != first.port, allocated(body) < after, body.include?(%(worker="#{Process.pid}"))
        exit!(0)
      end
      writer.close
      Process.wait(pid)
      puts reader.read
      puts get(first, "/metrics").code
      Memprof::Agent.stop
      puts((Net::HTTP.get_response(first) rescue $!.class))
    RUBY
    expect(result.stdout.lines(chomp: true))
      .to eq(%w[true true true true true true 200 Errno::ECONNREFUSED]), result.stderr
  end
end
