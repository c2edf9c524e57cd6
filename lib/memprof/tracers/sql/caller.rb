# frozen_string_literal: true

require_relative "../../lock"
require_relative "../../paths"

module Memprof
  module Tracers
    class Sql < Client
      # The application's line that is running: the innermost outside of gems, the standard library and
      # memprof.
      module Caller
        # Maximum number of frames to search.
        DEEPEST = 400
        # Initial batch size where Ruby can't yield frames one by one; doubled each time.
        STEP = 16
        # Maximum number of cached paths.
        KNOWN = 10_000
        # Methods of templates contain the path and a number in their name.
        TEMPLATE = /\A_\w+_\d+_\d+\z/
        # The prefix that Ruby prints before the method's name.
        WITHIN = /\A(?:.* in )?/
        private_constant :DEEPEST, :STEP, :KNOWN, :TEMPLATE, :WITHIN

        @files = {}

        class << self
          # The caller as "app/models/order.rb:7 in total", or nil.
          def find
            file = found = nil
            each_location do |location|
              if found
                return text(file, found) unless same_line?(found, location)
              else
                file = file_of(location) or next
              end
              found = location
            end
            text(file, found) if found
          end

          private

          if Thread.respond_to?(:each_caller_location)
            def each_location
              left = DEEPEST
              Thread.each_caller_location do |location|
                yield location
                break if (left -= 1).zero?
              end
            end
          else
            def each_location(&block)
              start = 2
              step = STEP
              while start < DEEPEST
                locations = caller_locations(start, step)
                locations&.each(&block)
                break if locations.nil? || locations.size < step

                start += step
                step *= 2
              end
            end
          end

          # C methods, such as `map`, have their caller's line: that line's method is the next frame.
          def same_line?(one, other) = one.lineno == other.lineno && one.path == other.path

          # The short path of an application file; false for others. (Two threads may both look it up.)
          def file_of(location)
            path = location.path or return false
            @files.fetch(path) do
              @files = {} if @files.size >= KNOWN
              @files[path] = application_file(location.absolute_path || path)
            end
          end

          def application_file(path)
            path = Printable.utf8(path)
            Paths.application?(path) && Printable.line(Paths.short(path))
          end

          def text(file, location)
            method = Printable.line(location.label.to_s).sub(WITHIN, "")
            place = "#{file}:#{location.lineno}"
            unnamed = method.empty? || method.start_with?("<") || method.match?(TEMPLATE)
            unnamed ? place : "#{place} in #{method}"
          end
        end
      end
      private_constant :Caller
    end
  end
end
