# frozen_string_literal: true

require "open3"
require "rbconfig"

module Memprof
  module Compat
    class Uploader
      # `--info`: the facts about this Ruby that a bug report needs.
      class Info
        def initialize(terminal)
          @terminal = terminal
        end

        def show
          text = sections.map { |title, content| "#{title}:\n  #{content.gsub("\n", "\n  ")}\n" }.join("\n")
          @terminal.print(text) ? 0 : 1
        end

        private

        def sections
          config = RbConfig::CONFIG
          {
            "Ruby" => RUBY_DESCRIPTION, "memprof" => VERSION, "CFLAGS" => config["CFLAGS"].to_s,
            "Configure arguments" => config["configure_args"].to_s,
            "Binary" => "#{RbConfig.ruby}\n#{kind}", "Libraries" => libraries
          }
        end

        def kind = output("file", "-L", RbConfig.ruby) || "(`file` is not installed)"

        def libraries
          command = RUBY_PLATFORM.include?("darwin") ? %w[otool -L] : %w[ldd]
          output(*command, RbConfig.ruby) || "(`#{command.first}` is not installed)"
        end

        def output(*command)
          text, = Open3.capture2e(*command)
          text.strip.gsub("\t", "")
        rescue SystemCallError
          nil
        end
      end
    end
  end
end
