# frozen_string_literal: true

require "json"
require "tmpdir"

# Every public method that writes, where nothing can be written.
RSpec.describe "Results that can't be written" do
  writers = <<~RUBY
    require "memprof"
    require "memprof/malloc"
    require "heap_dump"
    def outcome
      yield
      "nothing"
    rescue Exception => error
      [error.class.name, error.message]
    end
    heap = Memprof::Heap.capture
    report = Memprof.report { Object.new }
    growth = Memprof.growth(warmup: 0, times: 4) { Object.new }
    recording = File.join(Dir.mktmpdir, "recording")
    Memprof::Malloc.record(recording)
    "x" * 100_000
    Memprof::Malloc.stop
    recording = Memprof::Malloc::Recording.new(recording)
    ANY = {
      "dump" => ->(to) { Memprof.dump(to) { Object.new } },
      "dump_all" => ->(to) { Memprof.dump_all(to) },
      "dump_all of objspace" => ->(to) { Memprof.dump_all(to, format: :objspace) },
      "dump_all by fork" => ->(to) { Memprof.dump_all(to, fork: true) },
      "stats" => ->(to) { [Memprof.start, Object.new, Memprof.stats(to)] },
      "stats!" => ->(to) { [Memprof.start, Object.new, Memprof.stats!(to)] },
      "track" => ->(to) { Memprof.track(to) { Object.new } },
      "trace" => ->(to) { Memprof.trace(to) { Object.new } },
      "Report#write" => ->(to) { report.write(to) },
      "Report#write of JSON" => ->(to) { report.write(to, format: :json) },
      "Report#write of pprof" => ->(to) { report.write(to, format: :pprof) },
      "Report#pretty_print" => ->(to) { report.pretty_print(to) },
      "Growth#write" => ->(to) { growth.write(to) },
      "Iseqs#write" => ->(to) { Memprof.iseqs.write(to) },
      "Heap#export" => ->(to) { heap.export(to, format: :dot) },
      "Subset#save" => ->(to) { heap.subset.save(to) },
      "Subset#to_gml" => ->(to) { heap.subset.to_gml(to) },
      "Recording#write" => ->(to) { recording.write(to, format: :massif) }
    }
    NAMES = {
      "Report#pretty_print" => ->(to) { report.pretty_print(to_file: to) },
      "trace_filename=" => ->(to) { Memprof.trace_filename = to },
      "trace_to" => ->(to) { Memprof.trace_to(to) },
      "Malloc.record" => ->(to) { Memprof::Malloc.record(to) },
      "HeapDump.dump" => ->(to) { HeapDump.dump(to) }
    }
  RUBY

  def outcomes(code)
    result = run_ruby(code)
    expect(result.stderr).to be_empty
    JSON.parse(result.stdout)
  end

  def others(found, pattern)
    found.reject { |_, (name, message)| name == "Memprof::Error" && pattern.match?(message) }
  end

  it "are errors of memprof's own where a pipe has no reader" do
    found = outcomes(<<~RUBY)
      #{writers}
      found = ANY.transform_values do |write|
        reader, writer = IO.pipe
        reader.close
        outcome { write.call(writer) }
      end
      puts JSON.generate(found)
    RUBY
    expect(found.size).to be >= 18
    expect(others(found, /Broken pipe/)).to eq({})
  end

  it "are errors of memprof's own where the working directory was removed" do
    found = outcomes(<<~RUBY)
      #{writers}
      Dir.chdir(Dir.mktmpdir)
      Dir.rmdir(Dir.pwd)
      named = NAMES.transform_keys { |name| "\#{name} of a name" }
      puts JSON.generate(ANY.merge(named).transform_values { |write| outcome { write.call("result") } })
    RUBY
    expect(found.size).to be >= 23
    expect(others(found, /cannot write result: .*directory/)).to eq({})
  end
end
