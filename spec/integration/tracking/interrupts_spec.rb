# frozen_string_literal: true

# Threads that are ended at any moment of a tracked block: by Thread#kill, by Timeout, by an exception from another thread.
# In processes of their own: a session that nobody can close tracks for as long as its process lives.
RSpec.describe "Tracked blocks whose threads are ended" do
  # Runs a piece of code over and over on threads that are ended, and says which left something behind.
  def ended(work, setup: "", times: 2000)
    run_ruby(<<~RUBY)
      require "memprof"
      require "memprof/middleware"
      require "memprof/testing"
      require "timeout"
      NATIVE = Memprof.const_get(:Native) rescue NATIVE = Memprof.send(:const_get, :Native)
      OUT = File.open(File::NULL, "w")
      #{setup}
      left = nil
      #{times}.times do |number|
        thread = Thread.new { loop { #{work} } }
        thread.report_on_exception = false
        Thread.pass while rand(3) > 0
        sleep(rand * 0.002) if number % 3 == 0
        number.odd? ? thread.kill : thread.raise(Timeout::Error, "late")
        thread.join rescue nil
        break left = number if NATIVE.sessions > 0 || Memprof.running?
      end
      disabled = GC.disable
      puts "left: \#{left.inspect}, collector off: \#{disabled}"
    RUBY
  end

  {
    "Memprof.report" => "Memprof.report(scope: :thread) { 'x'.dup }",
    "Memprof.track" => "Memprof.track(OUT) { 'x'.dup }",
    "the middleware" => "APP.call({})",
    "a matcher that counts bytes" => "MEASURE.new(-> { 'x'.dup }, MEASURE::Plan.new(0, true, false))",
    "Memprof.start" => "Memprof.start; Memprof.stop"
  }.each do |name, work|
    it "leaves nothing behind: #{name}" do
      setup = <<~RUBY
        APP = Memprof::Middleware.new(->(_) { [200, {}, ["x"]] }, io: OUT)
        MEASURE = Memprof::Testing::Measurement
      RUBY
      work = "begin; #{work}; ensure; Memprof.stop; end" if name == "Memprof.start"
      result = ended(work, setup: setup)
      expect(result.stderr).to eq("")
      expect(result.stdout).to eq("left: nil, collector off: false\n")
    end
  end

  it "closes what was opened in between" do
    result = run_ruby(<<~RUBY)
      require "memprof"
      NATIVE = Memprof.send(:const_get, :Native)
      session = Memprof::Session.prepare
      p session.closed?, NATIVE.sessions
      session.close
      2.times { session.open } # begins anew, and is still one
      p session.closed?, NATIVE.sessions
      2.times { session.close }
      p session.closed?, NATIVE.sessions
    RUBY
    expect(result.stdout).to eq("true\n0\nfalse\n1\ntrue\n0\n")
  end
end
