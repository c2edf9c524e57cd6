# frozen_string_literal: true

# Where the report of `memprof run` goes, and what happens if it cannot go there.
RSpec.describe "memprof run" do
  include_context "with memprof run"

  describe "--output" do
    it "keeps stdout for the program" do
      stdout, stderr, = run("--output", "report.txt", "ruby", "-e", "puts 1")

      expect(stdout).to eq("1\n")
      expect(stderr).to match(/\Amemprof: reports, .*:\n +\d+ +-e +\d.* [KM]?i?B +report\.txt\n\z/)
      expect(file("report.txt")).to include("retained of")
      expect(File.stat(File.join(directory, "report.txt")).mode.to_s(8)).to end_with("600")
      expect(Dir.children(temporary)).to be_empty
    end

    it "is where memprof was started, wherever the program goes" do
      run("--output", "report.txt", "ruby", "-e", "Dir.chdir('/')")

      expect(reports).to eq(["report.txt"])
    end

    it "names the process with %p" do
      code = "$stdout.sync = true; puts $$; Process.wait(fork { puts $$ })"
      stdout, = run("--output", "%p-report", "ruby", "-e", code)

      expect(reports).to match_array(stdout.split.map { |pid| "#{pid}-report" })
    end

    it "warns if it cannot be written in the end, and leaves the exit status" do
      run("--output", "gone/report.txt", "ruby", "-e", "1")
      Dir.mkdir(File.join(directory, "gone"))
      stdout, stderr, status = run("--output", "gone/report.txt", "ruby", "-e", "Dir.rmdir('gone'); exit 3")

      expect(stdout).to be_empty
      expect(stderr).to match(%r{\Amemprof: no report of process \d+: cannot write .*/gone.*\n\z})
      expect(status.exitstatus).to eq(3)
    end

    it "warns about a full disk, and leaves the exit status" do
      skip "no /dev/full here" unless File.exist?("/dev/full")
      stdout, stderr, status = run("--output", "/dev/full", "ruby", "-e", "exit 3")

      expect(stdout).to be_empty
      expect(stderr).to match(/\Amemprof: no report of process \d+: .*No space left on device.*\n\z/)
      expect(status.exitstatus).to eq(3)
      expect(File.stat("/dev/full")).to be_chardev
    end

    it "is refused before the program runs if it is a directory" do
      { "." => ".", "" => '""' }.each do |output, name|
        stdout, stderr, status = run("--output", output, "ruby", "-e", "puts 1")

        expect([stdout, stderr]).to eq(["", "memprof: cannot write --output #{name}: is a directory\n"])
        expect(status.exitstatus).to eq(2)
      end
    end

    it "is refused before the program runs if its directory cannot be written" do
      skip "root may write anywhere" if Process.uid.zero?
      Dir.mkdir(File.join(directory, "shut"), 0o500)
      stdout, stderr, status = run("--output", "shut/report.txt", "ruby", "-e", "puts 1")

      expect(stdout).to be_empty
      expect(stderr).to match(%r{\Amemprof: cannot write --output shut/report.txt: not writable: .*\n\z})
      expect(status.exitstatus).to eq(2)
    end
  end

  describe "a stdout" do
    it "whose reader leaves is no error" do
      stdout, stderr, status = shell("($MEMPROF ruby -e 'puts 1'; echo status $? >&2) | head -1")

      expect(stdout).to eq("1\n")
      expect(stderr).to eq("status 0\n")
      expect(status).to be_success
    end

    it "that is closed is no error" do
      _, stderr, status = shell("$MEMPROF ruby -e 'exit 3' >&-")

      expect(stderr).to eq("")
      expect(status.exitstatus).to eq(3)
    end

    it "that is full costs the report its place, not the program its exit status" do
      skip "no /dev/full here" unless File.exist?("/dev/full")
      _, stderr, status = shell("$MEMPROF ruby -e 'exit 3' >/dev/full")

      expect(stderr).to match(/\Amemprof: cannot print the result: No space left on device/)
      expect(file(named(stderr).first)).to include("retained of")
      expect(status.exitstatus).to eq(3)
    end
  end
end
