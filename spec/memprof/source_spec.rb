# frozen_string_literal: true

require "memprof/source"
require "tmpdir"

RSpec.describe Memprof::Source do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def lines(name, line) = described_class.lines(File.expand_path(name), line)

  it "has the lines around one" do
    File.write("app.rb", (1..20).map { |number| "line #{number}\n" }.join)
    expect(lines("app.rb", 10).map { |row| row[:line] }).to eq([*6..14])
    expect(lines("app.rb", 1).first).to eq(line: 1, text: "line 1")
    expect(lines("app.rb", 20).last).to eq(line: 20, text: "line 20")
  end

  it "has none of a line that is not there: the file is another one now" do
    File.write("app.rb", "one\n")
    expect([lines("app.rb", 2), lines("app.rb", 50), lines("app.rb", 0)]).to eq([nil, nil, nil])
  end

  it "reads nothing but Ruby's files of a bearable size" do
    File.write("secret.txt", "secret\n")
    File.write("large.rb", "#\n" * 2_000_000)
    Dir.mkdir("directory.rb")
    File.mkfifo("pipe.rb")
    File.symlink("secret.txt", "link.rb")
    ["secret.txt", "large.rb", "directory.rb", "pipe.rb", "link.rb", "missing.rb"].each do |name|
      expect(lines(name, 1)).to be_nil, name
    end
    expect(described_class.lines("a\0.rb", 1)).to be_nil
  end

  it "shows what is no text, and long lines in part" do
    File.binwrite("app.rb", "\xFF\n#{"x" * 10_000}\n")
    expect(lines("app.rb", 1).map { |row| row[:text] }).to eq(["\\xFF", "x" * 240])
  end

  it "has one line without the blanks around it" do
    File.write("app.rb", "def call\n  body\n\nend\n")
    line = ->(number) { described_class.line(File.expand_path("app.rb"), number) }
    expect([line[2], line[3], line[9]]).to eq(["body", nil, nil])
  end
end
