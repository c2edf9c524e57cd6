# frozen_string_literal: true

require "support/verdict_programs"
require "tmpdir"

# Programs that leak, each in a way that was reported of real ones, and programs that do not. Each is dumped
# three times; what `memprof leaks` says of the dumps has to name what the program was written to do.
RSpec.describe "memprof leaks, of several dumps" do
  include ChildRuby

  looking = <<~'RUBY'
    require "memprof"
    Memprof.start
    def look
      GC.start
      Memprof.dump_all("#{$looks = $looks.to_i + 1}.memprof")
      exit!(0) if $looks == 3
    end
    # A line of which the dump has objects.
  RUBY

  # The text of the answer.
  define_method(:verdict) do |path|
    Dir.mktmpdir do |directory|
      File.write(File.join(directory, "looking.rb"), looking)
      ran = run_ruby(path, ruby_args: ["-r./looking.rb"], chdir: directory)
      raise ran.stderr unless ran.success?

      answer = run_memprof("leaks", "1.memprof", "2.memprof", "3.memprof", chdir: directory)
      expect(answer.status.exitstatus).to eq(0), answer.stderr
      answer.stdout
    end
  end

  def verdict_of(program)
    Dir.mktmpdir do |directory|
      path = File.join(directory, "app.rb")
      File.write(path, program)
      verdict(path)
    end
  end

  leaks, healthy = VerdictProgram.all.partition { |program| !program.nothing? }

  leaks.each do |program|
    it "names what leaks in #{program.name.tr("_", " ")}" do
      skip program.missing if program.missing
      text = verdict(program.path)
      skip "no /proc/self/smaps" if program.native? && text.include?("do not say what RSS was")
      expect(program.not_named(text)).to eq([]), text
      expect(text.lines.size).to be <= 30
    end
  end

  healthy.each do |program|
    it "accuses nothing in #{program.name.tr("_", " ")}" do
      skip program.missing if program.missing
      text = verdict(program.path)
      expect(program.judge(text)).to eq("right"), text
    end
  end

  it "names what is large in one dump, and the same program's dump without roots answers nothing" do
    Dir.mktmpdir do |directory|
      File.write(File.join(directory, "app.rb"), <<~'RUBY')
        require "memprof"
        Memprof.start
        class Page
          def initialize(number) = @lines = Array.new(20) { |line| "line #{line} of page #{number}" }
        end
        PAGES = {}
        200.times { |number| PAGES[number] = Page.new(number) }
        Memprof.dump_all("all.memprof")
        require "objspace"
        ObjectSpace.trace_object_allocations { PAGES[:new] = Page.new(-1) }
        File.open("since.json", "w") { |file| ObjectSpace.dump_all(output: file, since: 0) }
      RUBY
      ran = run_ruby(File.join(directory, "app.rb"), chdir: directory)
      expect(ran.status.exitstatus).to eq(0), ran.stderr
      answer = run_memprof("leaks", "all.memprof", chdir: directory)
      expect(answer.status.exitstatus).to eq(0), answer.stderr
      expect(answer.stdout).to match(/^1\. 200 Page instances retain \S+ KiB \(\S+ %\)$/)
      expect(answer.stdout).to match(/^Retained by +PAGES -> Hash\[\*\]$/)
      expect(answer.stdout).to match(/^Mostly in +Page@lines -> Array\[\*\] -> String \(4,000, /)
      expect(answer.stdout).to match(/^Age +\d.* GCs?$/)
      expect(answer.stdout).to match(/^RSS was \S+ MiB: /) if File.exist?("/proc/self/smaps")
      [["since.json"], ["since.json", "all.memprof"]].each do |files|
        unknown = run_memprof("leaks", *files, chdir: directory)
        expect([unknown.status.exitstatus, unknown.stdout]).to match([2, /Not known: a dump lacks roots/])
      end
    end
  end

  it "names each line that allocates a good part" do
    text = verdict_of(<<~'RUBY').gsub(/\n +/, " ")
      KEPT = []
      def load = KEPT << "x" * 2000
      def read = KEPT << "y" * 1000
      3.times { 200.times { load; read }; look }
    RUBY
    expect(text).to match(/app\.rb:2 in load: String .*; \S*app\.rb:3 in read: String /)
  end
end
