# frozen_string_literal: true

require_relative "cell"
require_relative "source"

module Memprof
  # The line of the application behind a leak suspect: in words, and with its source.
  module OwnCode
    class << self
      # The answer with the text of each line, if its file can be read.
      def with_source(answer)
        suspects = answer[:suspects].map do |suspect|
          own = suspect[:own]
          own ? suspect.merge(own: own.merge(source: Source.line(own[:file], own[:line]))) : suspect
        end
        answer.merge(suspects: suspects)
      end

      # "2,000 blocks written at checkout.rb:11 in call retain 16.4 MiB (98.2 % of it)"
      def sentence(own)
        place = Cell.place(own)
        what =
          case own[:kind]
          when "block" then "#{Units.plural(own[:count], "block")} written at #{place}"
          when "class" then "#{instances(own)}, whose class is defined at #{place},"
          else "#{instances(own)} allocated at #{place}"
          end
        "#{what} #{own[:count] == 1 ? "retains" : "retain"} #{Units.bytes(own[:retained])} " \
          "(#{Cell.percent(own[:share])} of it)"
      end

      private

      def instances(own)
        count, of_class, name = own.values_at(:count, :of_class, :class)
        return Units.plural(count, "#{name} instance") if count == of_class

        "#{Units.count(count)} objects (#{Units.count(of_class)} #{name})"
      end
    end
  end
end
