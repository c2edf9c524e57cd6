# frozen_string_literal: true

require "tmpdir"

# Programs that are no Ruby, recorded to a file.
RSpec.describe "memprof run --malloc of a program that is no Ruby" do
  before do
    skip "malloc is recorded on Linux" unless RUBY_PLATFORM.include?("linux")
    skip "this Ruby has no libruby" unless File.read("/proc/self/maps").include?("/libruby")
  end

  around { |example| Dir.mktmpdir { |directory| (@directory = directory) && example.run } }

  let(:path) { File.join(@directory, "app.malloc") }

  # Names of functions are known as far as they are exported, or a file has them.
  def compiled(source, *flags)
    program = File.join(@directory, "grow")
    File.write("#{program}.c", source)
    compiler = RbConfig::CONFIG["CC"].split.first
    system(compiler, "-O0", *flags, "-pthread", "-o", program, "#{program}.c") or raise "cannot compile"
    program
  end

  # Its function `hidden` is named in a file beside it.
  def with_debug_file
    program = compiled(<<~C, "-g")
      #include <stdlib.h>
      #include <string.h>
      void *volatile kept;
      static __attribute__((noinline)) void *hidden(size_t size) { return memset(malloc(size), 1, size); }
      int main(void) { kept = hidden(500000); return 0; }
    C
    commands = [%w[objcopy --only-keep-debug grow grow.debug], %w[strip --strip-all grow],
      %w[objcopy --add-gnu-debuglink=grow.debug grow]]
    done = commands.all? { |command| system(*command, chdir: @directory) }
    skip "binutils are not installed" unless done
    program
  end

  it "names a library by its file, though it was opened by a relative name and the directory was left" do
    library = File.join(@directory, "leaky library.so")
    File.write("#{library}.c", <<~C)
      #include <stdlib.h>
      void *volatile kept;
      void leak(void) { kept = malloc(700000); }
    C
    compiler = RbConfig::CONFIG["CC"].split.first
    system(compiler, "-O0", "-shared", "-fPIC", "-o", library, "#{library}.c") or raise "cannot compile"
    program = compiled(<<~C)
      #include <dlfcn.h>
      #include <unistd.h>
      int main(void) {
        void (*leak)(void) = dlsym(dlopen("./leaky library.so", RTLD_NOW), "leak");
        if (chdir("/")) return 1;
        leak();
        return 0;
      }
    C
    ran = run_memprof("run", "--malloc", "-o", path, "--", program, chdir: @directory)
    expect(ran.status.exitstatus).to eq(0), ran.stderr
    rows = Memprof::Malloc::Recording.new(path).tree(:bottom_up, value: :leaked)
    expect(rows.first.values_at(:function, :module)).to eq ["leak", library]
  end

  it "has its blocks with native callers, also of threads" do
    program = compiled(<<~C, "-rdynamic")
      #include <pthread.h>
      #include <stdio.h>
      #include <stdlib.h>
      #include <string.h>
      void *volatile kept[1000];
      __attribute__((noinline)) void *buffer(size_t size) { void *made = malloc(size); return memset(made, 1, size); }
      __attribute__((noinline)) void grow(void) { for (int at = 0; at < 1000; at++) kept[at] = buffer(5000); }
      void *work(void *unused) { free(buffer(2000000)); return unused; }
      int main(void) {
        pthread_t thread;
        grow();
        pthread_create(&thread, NULL, work, NULL);
        pthread_join(thread, NULL);
        puts("done");
        return 7;
      }
    C
    ran = run_memprof("run", "--malloc", "-o", path, "--", program)
    expect([ran.stdout, ran.status.exitstatus]).to eq ["done\n", 7]
    expect(ran.stderr).to eq "Next: memprof malloc #{path}\n"
    expect(Dir.children(@directory)).to contain_exactly("grow", "grow.c", "app.malloc")
    expect(File.stat(path).mode & 0o777).to eq(0o600)

    recording = Memprof::Malloc::Recording.new(path)
    expect(recording.to_h).to include(command: program, complete: true, missed: 0)
    expect(recording.to_h[:total]).to include(leaked_bytes: be_between(5_000_000, 5_100_000),
      peak_bytes: be_between(7_000_000, 7_100_000))
    callers = ->(value) { recording.tree(:bottom_up, value: value).map { |row| row[:function] } }
    expect(callers.call(:leaked)).to start_with("buffer", "grow", "main")
    expect(callers.call(:peak)).to include("work")
    expect(run_memprof("malloc", "--callers", "--value", "leaked", path).stdout)
      .to match(/ buffer \(grow\)\n +grow \(grow\)\n +main \(grow\)\n/)
  end

  it "has names of functions and lines from a file with its debugging information" do
    program = with_debug_file
    expect(run_memprof("run", "--malloc", "-o", path, "--", program).stderr).to start_with("Next: ")
    recording = Memprof::Malloc::Recording.new(path)
    functions = -> { recording.tree(:bottom_up, value: :leaked).map { |row| row[:function] } }
    expect(functions.call).to start_with("hidden", "main")
    expect(run_memprof("malloc", "--callers", path).stdout)
      .to match(/ hidden \(grow, grow\.c:4\)\n +main \(grow, grow\.c:5\)\n/)
    expect(recording.tree(:bottom_up, value: :leaked).first)
      .to include(function: "hidden", file: "#{program}.c", line: 4)
    row = recording.to_h[:locations].max_by { |one| one[:leaked_bytes] }
    expect(row[:location]).to match(/\(hidden\+0x\h+\) \[0x\h+\] grow\.c:4\z/)
    expect(recording.functions("hidden").first[:name]).to eq("hidden (grow)")
    heaptrack = StringIO.new.tap { |io| recording.write(io, format: :heaptrack) }.string
    expect(heaptrack).to include(" #{program}.c\n").and match(/ hidden\ni( \h+){4} 4\n/)
    File.unlink("#{program}.debug")
    expect(functions.call.first(2)).to eq([nil, nil])
    expect(run_memprof("malloc", "--callers", path).stdout).to match(/ grow\+0x\h+\n +grow\+0x\h+\n/)
  end

  it "has them in the table and the lines of memprof malloc, too" do
    program = with_debug_file
    location = /#{Regexp.escape(program)}\(hidden\+0x\h+\) \[0x\h+\] grow\.c:4$/
    expect(run_memprof("malloc", "--limit", "1", "--", program).stderr)
      .to match(/^ +500000 +1 +500000 +1  #{location}/)
    lines = File.join(@directory, "lines")
    expect(run_memprof("malloc", "--output", lines, "--min-size", "400000", "--", program).stderr).to eq("")
    expect(File.read(lines)).to match(/\A +500000 +1 #{location}\n\z/)
  end

  it "names what called C++'s operator new, as its source does" do
    source = File.join(@directory, "grow.cc")
    File.write(source, <<~CPP)
      char *volatile kept;
      namespace shop { __attribute__((noinline)) void fill(int) { kept = new char[500000]; kept[0] = 1; } }
      int main() { shop::fill(1); return 0; }
    CPP
    program = source.delete_suffix(".cc")
    compiled = system("c++", "-O0", "-rdynamic", "-o", program, source, err: File::NULL)
    skip "there is no C++ compiler" unless compiled
    place = /#{Regexp.escape(program)}\(shop::fill\+0x\h+\) \[0x\h+\]/
    expect(run_memprof("malloc", "--limit", "1", "--", program).stderr)
      .to match(/^ +500000 +1 +500000 +1  #{place}/)
    run_memprof("run", "--malloc", "-o", path, "--", program)
    location = Memprof::Malloc::Recording.new(path).to_h[:locations].max_by { |row| row[:leaked_bytes] }
    expect(location).to include(leaked_bytes: 500_000, location: match(place))
  end

  it "leaves files alone that have the number of its own, which the program closed" do
    program = compiled(<<~C, "-rdynamic")
      #include <fcntl.h>
      #include <stdio.h>
      #include <stdlib.h>
      #include <unistd.h>
      void *volatile kept;
      int main(int count, char **arguments) {
        char name[500];
        for (int number = atoi(arguments[2]); number < 1000; number++) close(number);
        for (int at = 0; at < 200; at++) {
          snprintf(name, sizeof name, "%s/theirs.%d", arguments[1], at);
          open(name, O_RDWR | O_CREAT, 0600);
        }
        kept = malloc(500000);
        return 7;
      }
    C
    written = -> { Dir["#{@directory}/theirs.*"].map { |file| File.size(file) }.uniq }
    table = run_memprof("malloc", "--limit", "1", "--", program, @directory, "3")
    expect(table.stderr).to match(/^ +500000 +1 +500000 +1  #{Regexp.escape(program)}\(main/)
    lines = File.join(@directory, "lines")
    ran = run_memprof("malloc", "--output", lines, "--", program, @directory, "0")
    expect(ran.status.exitstatus).to eq(7)
    expect(File.read(lines)).to match(/^ +500000 +1 #{Regexp.escape(program)}\(main/)
    ran = run_memprof("run", "--malloc", "-o", path, "--", program, @directory, "3")
    expect(ran.status.exitstatus).to eq(7)
    expect(written.call).to eq [0]
  end

  it "leaves the file to a Ruby that the program starts" do
    code = "#{RbConfig.ruby} -e 'kept = \"a\" * 900_000'; exit 4"
    ran = run_memprof("run", "--malloc", "-o", path, "--", "sh", "-c", code)
    expect(ran.stderr).to match(/\Amemprof: also recorded: \S+\.malloc\nNext: memprof malloc #{path}\n\z/)
    expect(ran.status.exitstatus).to eq 4
    recording = Memprof::Malloc::Recording.new(path).to_h
    expect(recording).to include(command: "-e", complete: true)
    other = Dir[File.join(@directory, "app.*.malloc")]
    expect(other.map { |file| Memprof::Malloc::Recording.new(file).to_h[:command] }).to eq ["sh"]
  end

  it "can be killed, and sampled" do
    ran = run_memprof("run", "--malloc", "--sample-bytes", "64", "-o", path, "--", "sort", "--version")
    expect(ran.stdout).to start_with("sort")
    expect(Memprof::Malloc::Recording.new(path).to_h).to include(sample: 64, complete: true)
    killed = run_memprof("run", "--malloc", "-o", path, "--", "sh", "-c", "sleep 0.3; kill -9 $$")
    expect(killed.status.exitstatus).to eq(137)
    recording = Memprof::Malloc::Recording.new(path)
    expect([recording.complete?, recording.to_h[:command]]).to eq [false, "sh"]
  end
end
