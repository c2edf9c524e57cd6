# frozen_string_literal: true

require "memprof/web"
require "tmpdir"

RSpec.describe Memprof::Web::Live::Dumps do
  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let(:dumps) { described_class.new(directory, kept: 2) }

  after { FileUtils.rm_rf(directory) }

  def take
    number = dumps.take
    eventually("the dump") { dumps.find(number) || dumps.failure(number) }
    eventually("its end") { dumps.writing(number).nil? }
    number
  end

  it "takes a dump that is the owner's alone" do
    number = take
    dump = dumps.find(number)
    expect(File.stat(dump.path).mode & 0o777).to eq(0o600)
    expect([dump.pid, dump.bytes]).to eq([Process.pid, File.size(dump.path)])
    expect(Time.now - dump.time).to be < 600
    expect(Memprof::Heap.open(dump.path, index: false).size).to be > 1000
  end

  it "keeps the youngest few" do
    numbers = Array.new(3) { take }
    eventually("room") { dumps.count == 2 }
    expect(dumps.map(&:number)).to eq(numbers.last(2).reverse)
  end

  it "writes one at a time, and says how far it is" do
    turn = Queue.new
    allow(Memprof).to receive(:dump_all) do |path, **|
      File.write("#{path}.IN_PROGRESS", "half", perm: 0o600)
      turn.pop
      File.rename("#{path}.IN_PROGRESS", path)
    end
    number = dumps.take
    expect { dumps.take }.to raise_error(Memprof::Error, /process \d+ is already writing a dump/)
    expect(eventually("a beginning") { dumps.writing(number)&.progress&.done == 4 }).to be(true)
    expect(described_class.new(directory).writing(number).progress.done).to eq(4) # as another worker sees it
    turn << true
    eventually("the dump") { dumps.find(number) }
    expect(eventually("its end") { dumps.writing(number).nil? }).to be(true)
  end

  it "reports why there is none" do
    number = described_class.new("/nowhere").tap { |lost| @lost = lost }.take
    expect(eventually("an end") { @lost.failure(number) }.message)
      .to match(%r{\Acannot write /nowhere/.*: no such directory: /nowhere\z})
    expect(@lost.to_a).to be_empty
  end

  it "sees no file that is not its own" do
    number = take
    name = File.basename(dumps.find(number).path)
    File.symlink("/etc/passwd", File.join(directory, name.sub(number.to_s, "1111111111111")))
    File.write(File.join(directory, name.sub(number.to_s, "22")), "")
    File.write(File.join(directory, "x#{name}"), "")
    expect(dumps.map(&:number)).to eq([number])
    if Process.uid.zero?
      File.chown(1, 1, dumps.find(number).path)
      expect(dumps.to_a).to be_empty
    end
  end

  it "removes what a killed process left, and what is deleted with its index" do
    number = take
    left = dumps.find(number).path.sub(number.to_s, "1111111111111").concat(".IN_PROGRESS")
    File.write(left, "half")
    last = take
    eventually("room") { !File.exist?(left) }
    File.write("#{dumps.find(last).path}.memprof-index", "")
    dumps.delete(last)
    dumps.delete(last)
    expect(Dir.children(directory).grep(/#{last}/)).to be_empty
  end
end
