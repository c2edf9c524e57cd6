# frozen_string_literal: true

require "memprof"
require "memprof/agent/directory"
require "tmpdir"

RSpec.describe "The directory of the agent" do
  around { |example| Dir.mktmpdir { |root| (@root = root) && example.run } }

  let(:path) { File.join(@root, "a/b") }

  def directory(at = path) = Memprof::Agent::Directory.new(at)
  def mode(path) = format("%o", File.stat(path).mode & 0o777)

  it "is below XDG_STATE_HOME, or temporary" do
    names = [{ "XDG_STATE_HOME" => "/state" }, { "XDG_STATE_HOME" => "state", "TMPDIR" => "/x" }, { "TMPDIR" => "x" }]
    found = names.map { |env| Memprof::Agent::Directory.default(env) }
    expect(found).to eq(["/state/memprof/agent", "/x/memprof-agent-#{Process.euid}",
      "#{Etc.systmpdir}/memprof-agent-#{Process.euid}"])
  end

  it "is created for this user alone, with its parents" do
    directory.prepare.prepare
    expect([mode(path), mode(File.dirname(path))]).to eq(%w[700 700])
  end

  it "has files of this user alone, complete or not there" do
    directory.prepare
    expect(directory.write("x.json") { |file| file.write("{}") }).to eq(File.join(path, "x.json"))
    expect([mode(File.join(path, "x.json")), File.read(File.join(path, "x.json"))]).to eq(%w[600 {}])
    failing = -> { directory.write("x.json") { |file| file.write("half") && raise(Memprof::Error, "why") } }
    expect(&failing).to raise_error(Memprof::Error, "why")
    expect([Dir.children(path), File.read(File.join(path, "x.json"))]).to eq([["x.json"], "{}"])
  end

  it "is removed with its files, but with nothing else" do
    sub = directory.prepare.subdirectory("sub")
    sub.write("x") { |file| file.write("x") }
    expect([sub.remove, Dir.children(path)]).to eq([true, []])
    directory.subdirectory("sub").subdirectory("more")
    expect([directory(File.join(path, "sub")).remove, Dir.children(path)]).to eq([false, ["sub"]])
  end

  it "is refused if it is a link, a file, or if other users can write to it or replace it" do
    File.symlink(@root, File.join(@root, "link"))
    File.write(File.join(@root, "file"), "")
    Dir.mkdir(File.join(@root, "open"))
    File.chmod(0o770, File.join(@root, "open"))
    Dir.mkdir(File.join(@root, "anyone"))
    File.chmod(0o777, File.join(@root, "anyone"))
    { "link" => "it is a symbolic link", "file" => "it is not a directory",
      "open" => "other users can write to it (chmod 700)", "anyone/x" => "other users can replace it" }
      .each do |name, reason|
      at = File.join(@root, name)
      expect { directory(at).prepare }.to raise_error(Memprof::Error, "cannot write to #{at}: #{reason}")
    end
  end

  it "is refused if it belongs to another user" do
    skip "only root can give a directory away" unless Process.euid.zero?
    Dir.mkdir(File.join(@root, "theirs"), 0o700)
    File.chown(65_534, nil, File.join(@root, "theirs"))
    expect { directory(File.join(@root, "theirs")).prepare }.to raise_error(Memprof::Error, /another user/)
  end

  it "is refused below something other than a directory, or a broken link" do
    File.write(File.join(@root, "file"), "")
    File.symlink("/nowhere", File.join(@root, "broken"))
    %w[file/x broken/x].each do |name|
      expect { directory(File.join(@root, name)).prepare }.to raise_error(Memprof::Error, /\Acannot write/)
    end
  end
end
