# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof top`: the largest objects.
    class Top < HeapCommand
      SUMMARY = "lists the objects that retain the most memory in a dump"
      USAGE = "[OPTIONS] FILE"
      DETAILS = <<~TEXT
        Retained size is the memory that would be freed together with the object.

        Examples:
          memprof top heap.memprof
          memprof top --sort length --where 'type = array' heap.memprof
          memprof top --procs heap.memprof
      TEXT

      def call(arguments)
        file, = expect_arguments(arguments, "FILE")
        @options[:procs] ? procs(file) : list(file)
      end

      private

      def list(file)
        answer = ask(open_heap(file), :top, **chosen(:where, :sort, :limit, :offset))
        present(answer, steps(file, answer)) do |page|
          objects = Units.plural(answer[:count], @options[:where] ? "matching object" : "object")
          page.heading("#{objects}, #{Units.bytes(answer[:size])}")
          page.listing(Objects.listing(answer[:objects], extra: extra))
          more(page, answer[:more], "object") unless answer[:objects].empty?
        end
      end

      # The value that objects are sorted by, if no other column shows it.
      def extra
        sort = @options[:sort]
        sort unless [nil, :retained, :size, :address].include?(sort)
      end

      # A proc retains its environment: its self, and the local variables in scope.
      def procs(file)
        refuse_options(%i[offset], "cannot be used with --procs")
        known = [nil, :retained, :size].include?(@options[:sort])
        raise UsageError,
          "invalid --sort \"#{@options[:sort]}\" with --procs; expected one of: retained, size" unless known

        answer = ask(open_heap(file), :procs, **chosen(:where, :sort, :limit))
        first = answer[:rows].first
        steps = first ? [[["path", file, first[:example][:address]], "what retains one of the first"]] : []
        present(answer, steps) do |page|
          page.heading("#{Units.plural(answer[:count], "proc")}, #{Units.bytes(answer[:size])}")
          page.listing(Objects.procs(answer[:rows]))
          more(page, answer[:more], "place") unless answer[:rows].empty?
        end
      end

      def steps(file, answer)
        first = answer[:objects].first
        return [] unless first

        [
          [["show", file, first[:address]], "details of the first"],
          [["path", file, first[:address]], "what retains it"]
        ]
      end
    end
  end
end
