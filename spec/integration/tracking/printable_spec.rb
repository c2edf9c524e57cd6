# frozen_string_literal: true

# Paths are the program's: a line break would forge a line, an escape sequence would act on the terminal.
RSpec.describe "Lines of stats and track" do
  it "are printable, whatever the path is" do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "a\n      1 forged\e[31m.rb")
      File.write(path, "def make = @kept = Object.new\n")
      result = run_ruby(<<~RUBY)
        require "memprof"
        load #{path.dump}
        Memprof.track { make }
        Memprof.start
        make
        Memprof.stats
        Memprof.stop
      RUBY
      expect(result.stderr).to eq("")
      expect(result.stdout).not_to include("\e")
      expect(result.stdout.lines).to all(match(/\A *\d+ \S.*:\d+:\S+/))
      expect(result.stdout.scan("a\\n      1 forged\\e[31m.rb:1:Object").size).to eq(2)
    end
  end
end
