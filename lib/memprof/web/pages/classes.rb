# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # A class or module: its place in the hierarchy, its contents, its instances.
      class ClassPage < HeapPage
        at "/heaps/:heap/classes/:class", place: "/heaps/:heap/classes"

        SITES = 15
        # Limit for subclasses, constants, methods.
        PARTS = 30
        MOST = 10_000
        private_constant :SITES, :PARTS, :MOST

        def title = answer[:text]

        def command
          where = answer[:where]
          where ? command_line("histogram", by: :line, where: where) : command_line("show", answer[:address])
        end

        def breadcrumbs
          parts = answer[:name].to_s.split("::")[0...-1]
          names = parts.each_index.map { |index| parts[0..index].join("::") }
          above = names.zip(parts).map { |name, part| [part, here("/namespaces?#{query(name)}")] }
          super + [["Classes", here("/classes")], *above]
        end

        # VM-internal objects have no class to show, and some dumps have objects without their classes: these
        # are shown as a list.
        def redirect
          answer
          nil
        rescue NotFound
          where = "class = #{Filter.quoted(captures.fetch(:class))}"
          raise if ask(:top, where: where, limit: 0)[:count].zero?

          "#{here("/objects")}?#{URI.encode_www_form(where: where)}"
        end

        def data
          where = answer[:where]
          sites = ask(:histogram, by: :line, where: where, limit: SITES) if where
          answer.merge(sites: sites)
        end

        private

        # Anonymous classes are named by address.
        def name = captures.fetch(:class)[/\A#<(?:Class|Module):(0x\h+)>\z/, 1] || captures.fetch(:class)

        def answer
          @answer ||= ask(:class, of: name, limit: integer(:limit, PARTS, max: MOST))
        rescue BadRequest => e
          raise NotFound, e.message
        end

        def query(name) = URI.encode_www_form(under: name)
      end

      # Classes and modules as a tree of their names.
      class Namespaces < HeapPage
        at "/heaps/:heap/namespaces", menu: "Namespaces", order: 50

        SORT = %i[retained size count classes name].freeze
        # Constants of a level; a page of its own shows more of those in one namespace.
        LIMIT = 100
        MOST = 10_000
        private_constant :LIMIT, :MOST

        def title = text(:under) ? "Classes in #{text(:under)}" : "Classes and modules"

        def command
          under = text(:under)
          command_line("histogram", by: :namespace, where: under && Filter.namespace(under))
        end

        def breadcrumbs
          text(:under) ? super + [["Namespaces", here("/namespaces")]] : super
        end

        def data
          answer = ask(:namespaces, under: text(:under), sort: choice(:sort, SORT, :retained), depth: 1,
            limit: limit)
          answer.merge(under: text(:under), limit: limit)
        end

        private

        def limit = integer(:limit, LIMIT, max: MOST)
      end
    end
  end
end
