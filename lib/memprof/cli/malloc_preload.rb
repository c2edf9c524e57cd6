# frozen_string_literal: true

require_relative "../native"

module Memprof
  module CLI
    # Preloads memprof's extension into a program other than Ruby, so that it records its malloc. The
    # extension needs libruby to be loaded, though it calls nothing in it there.
    module MallocPreload
      class << self
        # The environment for the program; nil if this Ruby has no libruby to preload, as it was built without
        # --enable-shared.
        def environment
          libraries = [libruby, extension]
          return unless libraries.all?

          before = ENV.fetch("LD_PRELOAD", "")
          { "LD_PRELOAD" => [*libraries, before].reject(&:empty?).join(" "), "MEMPROF_PRELOAD" => before }
        end

        private

        def libruby
          File.foreach("/proc/self/maps") do |line|
            path = line.chomp[%r{/.*}]
            return path if path && File.basename(path).start_with?("libruby") && path.include?(".so")
          end
          nil
        rescue SystemCallError
          nil
        end

        def extension = $LOADED_FEATURES.find { |path| File.basename(path) == "memprof.so" }
      end
    end
  end
end
