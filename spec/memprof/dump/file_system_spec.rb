# frozen_string_literal: true

require "memprof/dump"
require "tmpdir"

# Since Ruby 3.2 most methods that look at a file let all other threads run first. Beside three busy threads
# each takes 0.3 seconds, so a dump has none of them before its walk over the heap.
RSpec.describe Memprof::Dump, "and the file system" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  classes = [File, Dir, IO, File::Stat, FileTest]
  # These look at text, or at a descriptor that is there.
  harmless = %i[expand_path join for_fd new initialize fileno autoclose= close_on_exec=]

  # What is called before the heap is walked, by the files of memprof it is called from.
  define_method(:calls_before_the_walk) do |walk, &block|
    calls = []
    walked = false
    trace = TracePoint.new(:c_call) do |point|
      walked ||= point.method_id == walk
      next if walked || harmless.include?(point.method_id)

      owner = point.self.is_a?(Module) ? point.self : point.defined_class
      next unless classes.any? { |one| owner <= one }

      calls << [File.basename(point.path), "#{owner}##{point.method_id}"]
    end
    described_class.heap(StringIO.new, Memprof::Dump::Options.new) # loads what is loaded late
    # Finalizers of what earlier examples left would be seen as well.
    without_gc { trace.enable(target_thread: Thread.current, &block) }
    expect(walked).to be(true)
    calls
  end

  it "sees what is called, to begin with" do
    calls = calls_before_the_walk(:dump_heap) do
      File.read(__FILE__, 1)
      Dir.children(".")
      File.stat(".").directory?
      described_class.heap("heap.json", Memprof::Dump::Options.new)
    end
    names = calls.select { |file, _| file == File.basename(__FILE__) }.map(&:last)
    expect(names).to eq(%w[IO#read Dir#children File#stat File::Stat#directory?])
      .or(eq(%w[File#read Dir#children File#stat File::Stat#directory?]))
  end

  { false => :dump_heap, true => :fork_dump }.each do |fork, walk|
    it "is not asked from Ruby (#{walk})" do
      calls = calls_before_the_walk(walk) do
        described_class.heap("heap.json", Memprof::Dump::Options.new, fork: fork)
      end
      expect(calls).to eq([])
    end
  end

  it "is asked once for a dump that goes to an IO: where temporary files are" do
    calls = calls_before_the_walk(:dump_heap) do
      described_class.heap(StringIO.new, Memprof::Dump::Options.new)
    end
    expect(calls.map(&:first).uniq - ["tmpdir.rb"]).to eq([])
  end

  it "is not asked from Ruby for the open files and sizes" do
    skip "no /proc here" unless File.exist?("/proc/self/fd")
    options = Memprof::Dump::Options.new
    calls = []
    notes = nil
    trace = TracePoint.new(:c_call) do |point|
      owner = point.self.is_a?(Module) ? point.self : point.defined_class
      calls << point.method_id if classes.any? { |one| owner <= one }
    end
    without_gc do
      trace.enable(target_thread: Thread.current) { notes = Memprof::Dump::ProcNotes.notes(options) }
    end
    expect(notes.map(&:first)).to include("lsof", "ps")
    expect(calls).to eq([])
  end
end
