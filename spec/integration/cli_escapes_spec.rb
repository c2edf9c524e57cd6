# frozen_string_literal: true

# Names that others may have given, with escape sequences that would act on the terminal, and with line breaks
# that would let a name say something in memprof's name.
RSpec.describe "Names in messages of the command" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:hostile) { "a\e[31m\nmemprof: all is well" }

  before { run_ruby('require "memprof"; Memprof.dump_all("heap")') }

  {
    "an unknown command" => ->(name) { [name] },
    "a dump that is not there" => ->(name) { ["leaks", name] },
    "a file that is no dump" => ->(name) { File.write(name, "x") && ["top", name] },
    "a file that is no recording" => ->(name) { File.write(name, "x") && ["malloc", name] },
    "a core file that is not there" => ->(name) { ["core", name] },
    "a trace that is not there" => ->(name) { ["trace", name] },
    "a command that is not there" => ->(name) { ["run", name] },
    "a directory that is not there" => ->(name) { ["convert", "heap", "#{name}/heap.json"] },
    "a report that is not there" => ->(name) { ["diff", name, name] },
    "an option" => ->(name) { ["top", "heap", "--format", name] },
    "a file to write to" => ->(name) { ["export", "heap", "--format", "graphml", "--output", name] },
    "a heap to upload" => ->(name) { ["--file", name, "--name", name] }
  }.each do |what, arguments|
    it "are escaped: #{what}" do
      result = run_memprof(*instance_exec(hostile, &arguments))
      said = result.stdout + result.stderr
      expect(said).not_to include("\e")
      expect(said.lines).not_to include(a_string_starting_with("memprof: all is well"))
    end
  end

  it "leave the mark under the place of a filter where it is" do
    result = run_memprof("top", "heap", "--where", "class = = x")
    said = [a_string_starting_with("memprof: class is a text"), "class = = x", "        ^"]
    expect(result.stderr.lines(chomp: true)).to match(said)
  end
end
