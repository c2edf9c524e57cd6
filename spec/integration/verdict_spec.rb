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
