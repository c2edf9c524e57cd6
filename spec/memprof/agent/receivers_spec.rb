# frozen_string_literal: true

require "tmpdir"
require "zlib"
require "memprof/agent"
require "memprof/agent/receivers"

RSpec.describe Memprof::Agent::Receivers::Files do
  include AgentIntervals

  let(:base) { Dir.mktmpdir("memprof-spec-") }
  let(:directory) { File.join(base, "profiles") }

  after { FileUtils.rm_rf(base) }

  def names = Dir.children(directory).sort

  it "writes each interval for this user only" do
    path = described_class.new(directory).call(interval { Object.new })
    expect(names).to eq(["memprof-20231114T221420000Z-#{Process.pid}.pb.gz"])
    expect(File.stat(path).mode & 0o777).to eq(0o600)
    expect(File.stat(directory).mode & 0o777).to eq(0o700)
    expect(Zlib.gunzip(File.binread(path))).to include("service=shop", "release=3fe2a1", "worker=0",
      "inuse_space")
  end

  it "removes the oldest beyond a number" do
    files = described_class.new(directory, count: 3)
    6.times { |number| files.call(interval(at: 1_700_000_000 + 60 * number) { Object.new }) }
    expect(names.map { |name| name[/T(\d{6})/, 1] }).to eq(%w[221720 221820 221920])
  end

  it "removes the oldest beyond a size, but never the newest, and no other files" do
    files = described_class.new(directory, bytes: 1)
    files.call(interval { Object.new })
    File.write(File.join(directory, "memprof-of-mine.pb.gz"), "x" * 100)
    path = files.call(interval(at: 1_700_000_060) { Object.new })
    expect(names).to contain_exactly("memprof-of-mine.pb.gz", File.basename(path))
  end

  it "shares a directory with other processes" do
    directory = self.directory
    pids = Array.new(3) do |number|
      fork do
        files = described_class.new(directory, count: 5)
        8.times { |time| files.call(interval(at: 1_700_000_000 + 60 * time + number) { Object.new }) }
        exit!(0)
      rescue StandardError
        exit!(1)
      end
    end
    expect(pids.map { |pid| Process.wait2(pid).last }).to all(be_success)
    expect(names.size).to be_between(1, 5)
  end

  it "refuses a directory that is a link" do
    File.symlink(base, directory)
    expect { described_class.new(directory).call(interval { Object.new }) }
      .to raise_error(Memprof::Error, /symbolic link/)
  end
end
