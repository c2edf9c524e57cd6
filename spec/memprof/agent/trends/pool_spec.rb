# frozen_string_literal: true

require "memprof/agent/trends"
require "tmpdir"

RSpec.describe Memprof::Agent::Trends::Pool do
  include ChildRuby

  subject(:pool) { described_class.new(directory) }

  let(:parent) { Dir.mktmpdir("memprof-trends-") }
  let(:directory) { File.join(parent, "trends") }

  after { FileUtils.rm_rf(parent) }

  def path(number = 1) = File.join(directory, format("trends-%d-%08x.json", number, number))

  def published = pool.each_published.map { |content| content["service"] }

  it "shares files that only this user can read" do
    pool.publish({ service: "shop" })
    expect(published).to eq(["shop"])
    files = Dir.children(directory)
    expect(files.size).to eq(1)
    expect(File.stat(directory).mode & 0o777).to eq(0o700)
    expect(File.stat(File.join(directory, files.first)).mode & 0o777).to eq(0o600)
    pool.withdraw
    expect(published).to be_empty
  end

  it "ignores what is corrupt, huge, of another format, a link or a pipe" do
    pool.publish({ service: "shop" })
    good = File.read(Dir[File.join(directory, "trends-*")].first)
    File.write(path(1), good[0..-3])
    File.write(path(2), "\xFF\xFE")
    File.write(path(3), good.sub('"version":2', '"version":3'))
    File.write(path(4), "[" * 100_000)
    File.write(path(5), "")
    File.truncate(path(5), 1 << 30)
    File.write(File.join(parent, "elsewhere"), good)
    File.symlink(File.join(parent, "elsewhere"), path(6))
    File.link(File.join(parent, "elsewhere"), path(7))
    File.mkfifo(path(8))
    Dir.mkdir(path(9))
    File.write(File.join(directory, "notes.json"), good)
    expect(published).to eq(["shop"])
  end

  it "ignores files of other users" do
    skip "needs root" unless Process.euid.zero?

    pool.publish({ service: "shop" })
    File.write(path, File.read(Dir[File.join(directory, "trends-*")].first))
    File.chown(65_534, nil, path)
    expect(published).to eq(["shop"])
  end

  it "refuses a directory that is a link, or that others can enter" do
    Dir.mkdir(File.join(parent, "open"), 0o755)
    expect { described_class.new(File.join(parent, "open")) }.to raise_error(Memprof::Error, /mode 0700/)
    Dir.mkdir(File.join(parent, "private"), 0o700)
    File.symlink(File.join(parent, "private"), directory)
    expect { pool }.to raise_error(Memprof::Error, /must be a directory of this user/)
  end

  it "removes the files of processes that ended days ago, and keeps the others" do
    pool.publish({ service: "shop" })
    FileUtils.cp(Dir[File.join(directory, "trends-*")].first, path)
    FileUtils.touch(path, mtime: Time.now - 50 * 3600)
    pool.remove_old
    expect(File.exist?(path)).to be(false)
    expect(published).to eq(["shop"])
  end

  it "bounds the number of files" do
    pool.publish({ service: "shop" })
    200.times { |number| File.write(path(number + 1), "{}") }
    pool.remove_old
    expect(Dir.children(directory).size).to eq(128)
  end

  it "remembers what was named" do
    expect(pool.memory).to eq({})
    pool.memory = { leaks: [] }
    expect(pool.memory["leaks"]).to eq([])
  end

  it "has one leader among several processes, and another one after it was killed" do
    program = <<~RUBY
      require "memprof"
      require "memprof/agent/trends"
      pool = Memprof::Agent::Trends::Pool.new(ARGV[0])
      led = pool.lead { $stdout.puts("leads"); $stdout.flush; $stdin.read }
      puts("follows") unless led
    RUBY
    command = [RbConfig.ruby, "-I#{ChildRuby::LIB}", "-e", program, directory]
    leader = IO.popen(command, "r+")
    expect(leader.gets).to eq("leads\n")
    expect(IO.popen(command, "r+", &:gets)).to eq("follows\n")
    expect(pool.lead { raise "not reached" }).to be(false)
    Process.kill(:KILL, leader.pid)
    leader.close
    expect(pool.lead { nil }).to be(true)
  end
end
