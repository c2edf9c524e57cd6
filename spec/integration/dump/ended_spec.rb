# frozen_string_literal: true

require "tmpdir"

# A dump that is broken off leaves nothing: no file under any name, no child, and the process as it was.
RSpec.describe "A dump that is broken off" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # Calls `broken_off` many times, each a little later, and prints what is left. Some must not get to the end:
  # else the example would show nothing.
  def left_by(code)
    program = <<~RUBY
      require "memprof"
      Memprof.start
      $heap = Array.new(2_000) { |number| number.to_s }
      Memprof.dump_all("whole.json", fork: true) # loads all that is needed
      SECONDS = Memprof.dump_all("whole.json").seconds
      File.unlink("whole.json")
      broken = 0
      #{code}
      12.times do |round|
        [true, false].each do |fork|
          broken += 1 if broken_off(fork, SECONDS * round / 8)
          left = Dir.children(".") - ["heap.json"]
          abort("round \#{round}, fork: \#{fork}: \#{left}") unless left.empty?
          child = begin
            Process.wait
          rescue Errno::ECHILD
            nil
          end
          abort("round \#{round}, fork: \#{fork}: child \#{child}") if child
          # Not all of it: it would be garbage in the next dump, which would be twice as long.
          abort("half a dump") unless !File.exist?("heap.json") || File.open("heap.json") { |file|
            file.seek(-1000, IO::SEEK_END)
            file.read.lines.last.include?('"footer"')
          }
        end
      end
      # Not quiet any more: what is made is recorded.
      $more = Array.new(1000) { Object.new }
      recorded = Memprof.send(:session).stats.any? { |count, _, line| count == 1000 && line == __LINE__ - 1 }
      p broken.positive?, Memprof.running?, recorded, GC.enable
    RUBY
    stdout, stderr, = run_ruby(program, chdir: Dir.pwd, timeout: 300)
    expect(stderr).to eq("")
    stdout.split("\n")
  end

  let(:nothing) { %w[true true true false] }

  it "by Thread#kill leaves nothing" do
    expect(left_by(<<~'RUBY')).to eq(nothing)
      def broken_off(fork, delay)
        thread = Thread.new { Memprof.dump_all("heap.json", fork: fork) && Thread.current[:whole] = true }
        sleep(delay)
        thread.kill.join
        !thread[:whole]
      end
    RUBY
  end

  it "by an Interrupt leaves nothing" do
    expect(left_by(<<~'RUBY')).to eq(nothing)
      def broken_off(fork, delay)
        over = false
        sender = Thread.new { sleep(delay) && Process.kill(:INT, $$) }
        Memprof.dump_all("heap.json", fork: fork)
        sender.join
        sleep # the signal may be on its way still
      rescue Interrupt => e
        e.backtrace.any? { |line| line.include?("dump.rb") }
      end
    RUBY
  end

  it "by SystemExit or a throw leaves nothing" do
    expect(left_by(<<~'RUBY')).to eq(nothing)
      def broken_off(fork, delay)
        outcome = :left
        leave = [-> { throw :out }, -> { exit }][rand(2)]
        asked = false
        trace = TracePoint.new(:call) do |point|
          # What cleans up is called because of what came before.
          next if %i[finish kill reap discard].include?(point.method_id)
          next unless point.path.include?("/memprof/dump") && rand(30).zero?

          asked = true
          trace.disable
          leave.call
        end
        catch(:out) do
          trace.enable(target_thread: Thread.current) { Memprof.dump_all("heap.json", fork: fork) }
          outcome = :whole
        end
        outcome == :left
      rescue SystemExit
        true
      end
    RUBY
  end

  it "raises in the caller, if its thread is killed" do
    live_program("#{LivePrograms::HALTING}\n#{<<~'RUBY'}") do |program|
      gets
      Thread.list.find { |thread| thread.name == "memprof dump" }.kill
      sleep
    RUBY
      program.signal
      program.line
      expect(program.files.grep(/IN_PROGRESS/).size).to eq(1)
      program.continue
      eventually("a message") { program.stderr.end_with?("\n") }
      expect(program.stderr)
        .to eq("memprof: process #{program.pid}: no dump: the thread that waited for it ended\n")
      expect(program.files.grep_v(/sock/)).to be_empty
    end
  end
end
