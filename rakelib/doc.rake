# frozen_string_literal: true

require "open3"
require "rbconfig"
require "tmpdir"

# The examples in the API documentation are programs; each runs in a Ruby of its own.
module DocumentationExamples
  # What an example takes for granted, by the file that it is in; else what it is documented in.
  SETTINGS = {
    "lib/memprof/rspec" => %w[rspec/autorun memprof/rspec],
    "lib/memprof/minitest" => %w[minitest/autorun memprof/minitest]
  }.freeze
  # Parts of somebody's application: those must only be Ruby.
  FRAGMENT = /config\.ru|Rails/

  Example = Struct.new(:name, :title, :code, :libraries) do
    # @return [String, nil] what is wrong with it
    def problem
      return syntax_error if title.match?(FRAGMENT)

      arguments = ["memprof", *libraries].map { |library| "-r#{library}" }
      command = [RbConfig.ruby, "-I#{File.expand_path("lib")}", *arguments, "-e", code]
      output, status = Dir.mktmpdir { |directory| Open3.capture2e(*command, chdir: directory) }
      output unless status.success?
    end

    def syntax_error
      RubyVM::InstructionSequence.compile(code) && nil
    rescue SyntaxError => e
      e.message
    end
  end

  def self.all
    require "yard"
    YARD::Registry.load(Dir["lib/**/*.rb"], true)
    found = YARD::Registry.all.flat_map do |object|
      object.tags(:example).map { |tag| Example.new(object.path, tag.name, tag.text, libraries(object.file)) }
    end
    found.uniq(&:code)
  end

  def self.libraries(file)
    setting = SETTINGS.keys.find { |prefix| file.start_with?(prefix) }
    setting ? SETTINGS[setting] : [file[%r{\Alib/(memprof/\w+)}, 1]].compact
  end
end

desc "Write the API documentation to doc/, then doc:complete and doc:examples"
task :doc do
  next unless checker?("yard")

  sh(RbConfig.ruby, "-S", "yard", "doc", "--fail-on-warning", "--no-progress", "--no-stats")
  Rake::Task["doc:complete"].invoke
  Rake::Task["doc:examples"].invoke
end

desc "List the public names that are not documented; fails if there is one"
task "doc:complete" do
  command = [RbConfig.ruby, "-S", "yard", "stats", "--list-undoc", "--compact", "--no-progress"]
  statistics, = Open3.capture2(*command)
  puts(statistics)
  abort("undocumented public names, see above") unless statistics.include?("100.00% documented")
end

desc "Run the examples of the API documentation"
task "doc:examples" do
  examples = DocumentationExamples.all
  problems = examples.filter_map { |example| [example, example.problem] }.select(&:last)
  problems.each { |example, problem| warn("example of #{example.name}:\n#{example.code}\n\n#{problem}\n") }
  puts("#{examples.size} examples, #{problems.size} failures")
  abort if problems.any?
end
