# frozen_string_literal: true

require "json"
require "memprof/trace/trace_text"
require "stringio"

RSpec.describe Memprof::Trace::TraceText do
  # What a terminal gets.
  let(:terminal) do
    StringIO.new.tap do |io|
      def io.tty? = true
      def io.winsize = [24, 100]
    end
  end

  def shown = terminal.string.gsub(/\e\[\d*m/, "")

  it "is what a terminal gets of a trace, without what is empty, and the block's value is returned" do
    value = Memprof.trace(terminal) do
      GC.start
      Array.new(3) { Object.new }.size
    end
    expect(value).to eq(3)
    expect(shown).to match(/\A\d.* CPU; \d+ objects \(.*\) allocated\n\nWork .*\n/)
    expect(shown).to match(/^GC +1 .*1 major, 0 minor; by method\n/)
    expect(shown).to match(/^Objects +Bytes +Class\n(?:.*\n)*? +3 +\d+ B +Object\n/)
    expect(shown).not_to match(/Redis|HTTP|SQL|Views/)
  end

  it "is colored where the terminal can be" do
    Memprof.trace(terminal, tracers: :gc) { nil }
    expect(terminal.string).to match(/\A\e\[1m\d/)
  end

  it "is JSON for all else, as it was" do
    expect { Memprof.trace(tracers: :gc) { nil } }.to output(/\A{\n  "gc": {\n/).to_stdout
    io = StringIO.new
    Memprof.trace(io, tracers: :gc) { nil }
    expect(JSON.parse(io.string).keys).to eq(["gc"])
  end

  it "shows statements, N+1 first, cut to the width of the terminal" do
    statement = { "sql" => "select #{"a, " * 60} from t", "caller" => "app/models/order.rb:7 in total",
                  "queries" => 9, "time" => 0.25, "slowest" => 0.125, "n_plus_one" => true }
    sql = { "queries" => 10, "time" => 0.26, "statements" => [statement, *Array.new(11) {
      { "sql" => "select ?", "queries" => 1, "time" => 0.01, "slowest" => 0.01 }
    }] }
    text = described_class.new({ "sql" => sql }).to_s(width: 100)
    expect(text).to match(/^SQL +10 +260 ms$/)
    expect(text).to match(/^N\+1 +9 +250 ms +125 ms +select a, .*\.\.\..* from t +app.*order\.rb:7 in total$/)
    expect(text).to match(/^... and 2 more$/)
    expect(text.lines.map { |line| line.chomp.size }).to all(be <= 100)
  end

  it "shows a query once that a client library and Ruby have counted" do
    types = { "select" => { "queries" => 8, "time" => 0.1 }, "insert" => { "queries" => 1, "time" => 0.1 } }
    tracers = { "sql" => { "queries" => 10, "time" => 0.26 },
                "mysql" => { "queries" => 9, "time" => 0.2, "types" => types } }
    text = described_class.new(tracers).to_s
    expect(text).to match(/^SQL +10 +260 ms +MySQL: select 8, insert 1$/)
    expect(text).not_to match(/^MySQL/)
    # C code has made some itself.
    tracers["mysql"]["queries"] = 11
    expect(described_class.new(tracers).to_s)
      .to match(/^SQL +10 +260 ms$/).and match(/^MySQL +11 +200 ms +select 8, insert 1$/)
  end

  it "shows requests, errors, templates, and what tracers of the program report" do
    record = { "start" => 1_795_309_858_984_631, "time" => 0.5, "response" => { "code" => 200 },
               "rails" => { "controller" => "orders", "action" => "show" },
               "request" => { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/orders/7" },
               "tracers" => { "mine" => { "retries" => 3 }, "objects" => { "error" => "not counted" },
                              "fd" => { "read" => { "calls" => 2, "time" => 0.1, "actual" => 2048 } },
                              "threads" => { "created" => 2, "gvl_waits" => 1, "gvl_wait_time" => 0.001 },
                              "views" => { "calls" => 1, "time" => 0.1, "templates" => {
                                "app/views/a.erb" => { "calls" => 1, "time" => 0.1 }
                              } } } }
    expect(described_class.new(record).to_s).to eq(<<~TEXT)
      orders#show, GET /orders/7, status 200; 500 ms

      Work     Calls    Time  Of which
      mine                    retries 3
      I/O          2  100 ms  read 2 (2.0 KiB)
      Threads                 2 threads created; 1 wait for the GVL: 1.0 ms
      Views        1  100 ms

      Rendered    Time  Template
             1  100 ms  app/views/a.erb
    TEXT
  end
end
