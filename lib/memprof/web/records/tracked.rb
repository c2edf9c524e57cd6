# frozen_string_literal: true

require "json"
require_relative "../../internal_classes"
require_relative "../../native"
require_relative "../../paths"
require_relative "../answers"
require_relative "../frames"

module Memprof
  class Web
    class Records
      # Tracked allocations: a report as JSON, lines of stats, or collapsed stacks. All become sites with
      # numbers by name.
      class Tracked
        # A site, with its weights by name of the value.
        Site = Struct.new(:file, :line, :method_name, :class_name, :gem, :weights, :stack)

        LINE = /\A\s*(\d+) (.+?):(\d+):(.*)\z/
        STACK = /\A(.+) (\d+)\z/
        # The location in a frame: last, as in "call (rack.rb:7)", or first, as in "rack.rb:7:in call".
        PLACE = /(?<=\()(?:[^()]|\([^()]*\))*:\d+(?=\)\z)|\A.+?:\d+(?=:in )/
        KEPT = 4 # flame graphs
        # Replaces a stack that has only frames of others.
        OTHERS = "(gems and Ruby)"
        private_constant :LINE, :STACK, :PLACE, :KEPT, :OTHERS

        attr_reader :facts, :values, :sites

        class << self
          def read(io)
            text = io.read.force_encoding(Encoding::UTF_8).scrub
            return of_report(JSON.parse(text)) if text.lstrip.start_with?("{")

            lines = text.each_line(chomp: true).reject { |line| line.strip.empty? }
            lines.first&.match?(LINE) ? of_stats(lines) : of_stacks(lines)
          rescue JSON::ParserError
            raise Error, "the report is truncated: invalid JSON"
          end

          private

          def of_report(report)
            sites = report.fetch("sites").map { |site| report_site(site) }
            facts = report.fetch("meta", {}).merge("totals" => report["totals"]).transform_keys(&:to_sym)
            new(facts, %w[retained_bytes retained_objects allocated_bytes allocated_objects freed_objects],
              sites)
          rescue KeyError, NoMethodError, TypeError
            raise Error, "not a report of memprof: it has no sites"
          end

          def report_site(site)
            values = %w[retained allocated freed].each_with_object({}) do |name, all|
              all["#{name}_objects"], all["#{name}_bytes"] = site.fetch(name).values_at("objects", "bytes")
            end
            Site.new(*site.values_at("file", "line", "method", "class", "gem"), values, site["stack"] || [])
          end

          def of_stats(lines)
            sites = lines.filter_map do |line|
              number, file, place, name = LINE.match(line)&.captures
              file && Site.new(file, Integer(place, 10), nil, name, nil,
                { "objects" => Integer(number, 10) }, [])
            end
            new({}, ["objects"], sites)
          end

          # The outermost frame comes first, the class of the objects last.
          def of_stacks(lines)
            sites = lines.filter_map do |line|
              way, number = STACK.match(line)&.captures
              next unless way

              *stack, name = way.split(";")
              place = stack.last.to_s[PLACE].to_s.rpartition(":")
              Site.new(place[0], place[2].to_i, nil, name, nil, { "weight" => Integer(number, 10) },
                stack.reverse)
            end
            raise Error, "no tracked allocations in the file" if sites.empty?

            new({}, ["weight"], sites)
          end
        end

        def initialize(facts, values, sites)
          @facts = facts
          @values = values
          @sites = sites
          @answers = Answers.new(KEPT)
        end

        def self.short(frame) = frame.sub(PLACE) { |place| Paths.short(place) }

        def stacks? = @sites.any? { |site| site.stack.size > 1 }

        def unit(name) = name.end_with?("_bytes") ? :bytes : :count

        # Sites of VM-internal objects, listed only on request.
        def internal
          @internal ||= @sites.select { |site| InternalClasses.of_vm?(site.class_name) }
        end

        def sum(sites) = @values.to_h { |name| [name.to_sym, sites.sum { |site| site.weights[name].to_i }] }

        def rows(by, sort, internal: false)
          shown = internal ? @sites : @sites.reject { |site| InternalClasses.of_vm?(site.class_name) }
          groups = shown.group_by { |site| key(site, by) }
          rows = groups.map do |key, sites|
            { key: key, site: place(sites.first, by), **sum(sites) }
          end
          rows.sort_by { |row| [-row[sort.to_sym], row[:key]] }
        end

        # The same with names that start at the gem, as the rest of a path does not fit into a frame.
        def drawn_flame(value, own: false)
          @answers.fetch([value, own]) do
            flame = flame(value, own: own)
            Frames.widest(flame.merge(names: flame[:names].map { |name| self.class.short(name) }))
          end
        end

        # The stacks as a flame graph for {Icicle}.
        def flame(value, own: false)
          tree = Stacks.new
          theirs = Hash.new { |known, frame| known[frame] = of_others?(frame[PLACE]) }
          @sites.each do |site|
            stack = site.stack.reverse
            stack = own_frames(stack, theirs) if own
            tree.add(stack, site.class_name, site.weights[value].to_i)
          end
          tree.to_h
        end

        private

        # A frame without a location is a C method: it is treated like its caller.
        def own_frames(stack, theirs)
          hidden = true
          own = stack.reject { |frame| hidden = theirs[frame].then { |other| other.nil? ? hidden : other } }
          own.empty? && !stack.empty? ? [OTHERS] : own
        end

        def of_others?(place) = place && (place.start_with?("<internal:") || !Native.library_path(place).nil?)

        def key(site, by)
          case by
          when "class" then site.class_name.to_s
          when "file" then site.file.to_s
          when "gem" then site.gem.to_s
          when "method" then site.method_name.to_s
          else "#{site.file}:#{site.line}:#{site.class_name}"
          end
        end

        def place(site, by)
          return { file: site.file } if by == "file"

          { file: site.file, line: site.line, method: site.method_name,
            class: site.class_name } if by == "site"
        end

        # Merges stacks with common prefixes into one tree.
        class Stacks
          def initialize
            @names = ["all"]
            @by_name = { "all" => 0 }
            @frames = [[0, 0, 0, 0, nil, nil]]
            @below = {}
          end

          def add(frames, name, weight)
            return if weight.zero?

            @frames[0][3] += weight
            at = [*frames, name].compact.reduce(0) do |above, frame|
              number = @by_name[frame] ||= @names.push(frame).size - 1
              below = @below[above << 32 | number] ||= @frames.push([above, number, 0, 0, nil, nil]).size - 1
              @frames[below][3] += weight
              below
            end
            @frames[at][2] += weight
          end

          def to_h = { names: @names, frames: @frames }
        end
        private_constant :Stacks
      end
    end
  end
end
