# frozen_string_literal: true

module Memprof
  class Heap
    # A path from a GC root to an object: what retains it.
    #
    # @example
    #   KEPT = { "user:42" => Object.new }
    #   capture = Memprof::Heap.capture
    #   path = capture.path_to(KEPT["user:42"])
    #   path.to_s            #=> "KEPT -> Hash[\"user:42\"] -> Object"
    #   path.map(&:type_str) # from the root on, each with what led there as its label
    class Path
      include Enumerable

      # @return [Array<Object>] from the root to the object, each with its reference as {Object#label}
      attr_reader :steps

      # @api private
      def initialize(steps, sentence)
        @steps = steps.freeze
        @sentence = sentence.freeze
        freeze
      end

      # @api private
      # @param found [Array, nil] numbers, labels between them, a sentence
      def self.of(heap, found)
        return if found.nil?

        ids, labels, sentence = found
        new(ids.zip([nil, *labels]).map { |id, label| Object.new(heap, id, label&.freeze) }, sentence)
      end

      # @yieldparam object [Object] from the root on
      # @return [self, Enumerator]
      def each(&block)
        return enum_for(:each) { length } unless block_given?

        @steps.each(&block)
        self
      end

      # @return [Integer] objects, with the root
      def length = @steps.length
      alias_method :size, :length

      # @param index [Integer]
      # @return [Object, nil] from the root on
      def [](index) = @steps[index]

      # @return [Object] the object that the path leads to
      def target = @steps.last

      # @return [Object] the root that it begins at
      def root = @steps.first

      # @return [String] in words, from the first recognizable object on
      def to_s = @sentence

      # @return [String] for the console
      def inspect = "#<#{self.class} #{@sentence}>"
    end
  end
end
