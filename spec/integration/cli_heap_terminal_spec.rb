# frozen_string_literal: true

require "io/console"
require "pty"
require "timeout"

# What only a person's screen gets: colours, widths, the pager, progress.
RSpec.describe "memprof, asking a dump on a terminal" do
  include HeapDumps

  # All that a command writes to a screen of so many columns and rows, with progress and hints.
  def screen(*arguments, columns: 100, rows: 50, env: {}, input: nil)
    environment = { "RUBYOPT" => nil, "NO_COLOR" => nil, "TERM" => "xterm", "LC_ALL" => "C.UTF-8",
                    "PAGER" => "sed s/^/paged:/" }.merge(env)
    program = File.join(ChildRuby::ROOT, "exe/memprof")
    # It begins when the screen has its size.
    sized = "until [ \"$(stty size)\" = '#{rows} #{columns}' ]; do sleep 0.02; done; exec \"$@\""
    PTY.spawn(environment, "sh", "-c", sized, "sh", RbConfig.ruby, "-I#{ChildRuby::LIB}", program,
      *arguments) do |out, into, pid|
      out.winsize = [rows, columns]
      into.write(input) if input
      text = Timeout.timeout(180) { read(out) }
      Process.wait(pid)
      return text.gsub("\r\n", "\n").force_encoding(Encoding::UTF_8)
    end
  end

  # A terminal whose program ended fails to read.
  def read(out)
    text = +""
    loop { text << out.readpartial(4096) }
  rescue EOFError, Errno::EIO
    text
  end

  def plain(text)
    text.gsub(/\r[^\r\n]*\e\[K/, "").gsub(/\e\[[\d;]*[mK]/, "").delete("\r")
  end

  it "is coloured, unless NO_COLOR says no" do
    expect(screen("leaks", cache_dump)).to include("\e[1m")
    expect(screen("leaks", cache_dump, env: { "NO_COLOR" => "1" })).not_to match(/\e\[\d+m/)
  end

  [60, 80, 100].each do |columns|
    it "is nowhere wider than #{columns} columns" do
      [%w[leaks], %w[tree --limit 4 --depth 5], %w[top --limit 5]].each do |verb, *options|
        needs(:top) if verb == "top"
        lines = plain(screen(verb, cache_dump, *options, "--no-pager", columns: columns)).lines
        lines = lines.map(&:chomp).take_while { |line| line != "Next:" }
        expect(lines.select { |line| line.length > columns }).to eq([])
        expect(lines.join("\n")).to include("Sessions").or include("Hash (1000)")
      end
    end
  end

  it "goes through the pager if it is longer than the screen" do
    long = plain(screen("tree", cache_dump, "--limit", "20", rows: 10))
    expect(long).to match(/^paged:The roots retain/).and match(/^Next:$/)
    whole = plain(screen("tree", cache_dump, "--limit", "20", "--no-pager", rows: 10))
    expect(whole).not_to include("paged:")
    expect(plain(screen("leaks", cache_dump, rows: 200))).not_to include("paged:")
    expect(plain(screen("tree", cache_dump, rows: 10, env: { "PAGER" => "/nowhere/pager" })))
      .to match(/^The roots retain/)
  end
end
