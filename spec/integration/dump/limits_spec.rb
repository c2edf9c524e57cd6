# frozen_string_literal: true

require "tmpdir"

# Dumps of processes that can have little.
RSpec.describe "Dumps under limits" do
  def run_limited(code)
    Dir.mktmpdir do |directory|
      result = run_ruby("require \"memprof\"\n#{code}", chdir: directory, timeout: 400)
      expect(result).to be_success, result.stderr
      result.stdout.lines(chomp: true)
    end
  end

  # KiB, of the fields of /proc/self/status.
  sizes = <<~'RUBY'
    def size(name) = File.read("/proc/self/status")[/^#{name}:\s+(\d+)/, 1].to_i
  RUBY

  it "need no address space for a large stack", if: RUBY_PLATFORM.include?("linux") do
    expect(run_limited(<<~RUBY)).to eq(%w[memprof binary])
      #{sizes}
      Memprof.dump_all("warm.json")
      GC.start
      Process.setrlimit(:AS, (size("VmSize") + 40 * 1024) * 1024)
      puts Memprof.dump_all("heap.json").format, Memprof.dump_all("heap.memprof").format
    RUBY
  end

  # Ruby 3.3 may hang after a Thread.new that failed, so that is not tried.
  it "need no second thread at all", if: RUBY_PLATFORM.include?("linux") do
    expect(run_limited(<<~RUBY)).to eq(%w[memprof binary objspace])
      require "tmpdir"
      Memprof.dump_all("warm.json")
      if Process.uid.zero?
        Process::Sys.setuid(65_534) # the limit does not hold for root
        Dir.chdir(Dir.mktmpdir)
      end
      Process.setrlimit(:NPROC, 0)
      puts Memprof.dump_all("heap.json.gz").format, Memprof.dump_all("heap.memprof").format
      puts Memprof.dump_all("heap.json", format: :objspace).format
    RUBY
  end

  it "do not copy a large string", if: RUBY_PLATFORM.include?("linux") do
    grown = run_limited(<<~RUBY).map { |line| Integer(line) }
      #{sizes}
      $large = "0123456789abcdef" * (96 << 16)
      $binary = "\\xFF\\xFE".b * (48 << 16)
      %i[memprof objspace heap_dump binary].each do |format|
        Memprof.dump_all(File::NULL, format: format)
        before = size("VmHWM")
        Memprof.dump_all("heap", format: format)
        puts size("VmHWM") - before
      end
    RUBY
    expect(grown.max).to be < 24 * 1024
  end
end
