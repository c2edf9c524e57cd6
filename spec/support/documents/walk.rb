# frozen_string_literal: true

require "open3"
require "rbconfig"
require "tmpdir"
require_relative "../documents"

module Documents
  # Runs a page from top to bottom, as a reader does who pastes each block into the same directory. A block of
  # Ruby whose first line is a comment with a file name is saved under that name.
  class Walk
    BLOCK = /^```(?<language>ruby|sh)(?: (?<kind>[\w-]+))?\n(?<code>.*?)^```$/m
    NAME = /\A# (\w+\.rb)\n/

    # With `install: true` the blocks marked `checkout` run as well, in the checkout; the others use the gem
    # that they install, into a temporary directory. Without it they use the library of this checkout.
    def initialize(page, install: false)
      @page = File.join(ROOT, page)
      @install = install
    end

    # Yields the place of each block before it runs. Raises for the first one that fails, with its output.
    def run
      Dir.mktmpdir do |directory|
        @gems = File.join(directory, ".gems")
        Documents.matches(File.read(@page), BLOCK).each do |block|
          next if block[:kind] == "no-run" || (block[:kind] == "checkout" && !@install)

          place = Documents.place(@page, block)
          yield place if block_given?
          run_block(block, place, directory)
        end
      end
    end

    private

    def run_block(block, place, directory)
      directory = ROOT if block[:kind] == "checkout"
      command = command(block, directory)
      output, status = Open3.capture2e(environment, *command, chdir: directory, stdin_data: "")
      raise "#{place} failed (#{status})\n#{output}" unless status.success?
    end

    def command(block, directory)
      return ["bash", "-ec", block[:code]] if block[:language] == "sh"

      name = block[:code][NAME, 1] || (block[:kind] == "rspec" ? "example_spec.rb" : "example.rb")
      File.write(File.join(directory, name), block[:code])
      [RbConfig.ruby, *(%w[-S rspec] if block[:kind] == "rspec"), name]
    end

    def environment
      @install ? gem_environment : Documents.environment
    end

    # Gems that are there already are found, and new ones leave no trace in the system.
    def gem_environment
      {
        "RUBYOPT" => nil, "RUBYLIB" => nil, "GEM_HOME" => @gems,
        "GEM_PATH" => [@gems, *Gem.path].join(File::PATH_SEPARATOR),
        "PATH" => [File.join(@gems, "bin"), ENV.fetch("PATH")].join(File::PATH_SEPARATOR)
      }
    end
  end
end
