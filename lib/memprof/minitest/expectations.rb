# frozen_string_literal: true

module Memprof
  module Minitest
    # The assertions in Minitest::Spec style: `_ { ... }.wont_allocate`. Defined if `minitest/spec` (or
    # `minitest/autorun`) was required before `memprof/minitest`.
    module Expectations
      # See {Assertions#assert_allocations}.
      #
      # @return [true]
      # @raise (see Assertions#assert_allocations)
      #
      # @example
      #   describe "a greeting" do
      #     it("is cheap") { _ { "hello, #{1}" }.must_limit_allocations(String => 2) }
      #   end
      def must_limit_allocations(*limits, **more) = ctx.assert_allocations(*limits, **more, &target)

      # See {Assertions#assert_retentions}.
      #
      # @return [true]
      # @raise (see Assertions#assert_retentions)
      #
      # @example
      #   describe "a greeting" do
      #     it("keeps nothing") { _ { "hello, #{1}" }.must_limit_retentions(0) }
      #   end
      def must_limit_retentions(*limits, **more) = ctx.assert_retentions(*limits, **more, &target)

      # See {Assertions#refute_allocations}.
      #
      # @return [true]
      # @raise (see Assertions#refute_allocations)
      #
      # @example
      #   describe "a sum" do
      #     it("is free") { _ { 1 + 1 }.wont_allocate }
      #   end
      def wont_allocate(*classes, **options) = ctx.refute_allocations(*classes, **options, &target)

      # See {Assertions#refute_retentions}.
      #
      # @return [true]
      # @raise (see Assertions#refute_retentions)
      #
      # @example
      #   describe "a list" do
      #     it("is dropped") { _ { [1, 2] }.wont_retain(Array) }
      #   end
      def wont_retain(*classes, **options) = ctx.refute_retentions(*classes, **options, &target)

      # See {Assertions#refute_leaks}.
      #
      # @return [true]
      # @raise (see Assertions#refute_leaks)
      #
      # @example
      #   describe "a list" do
      #     it("is dropped") { _ { [1, 2] }.wont_leak(times: 10) }
      #   end
      def wont_leak(*classes, **options) = ctx.refute_leaks(*classes, **options, &target)

      # See {Assertions#refute_native_leaks}.
      #
      # @return [true]
      # @raise (see Assertions#refute_native_leaks)
      #
      # @example
      #   describe "a list" do
      #     it("is freed") { _ { [1, 2] }.wont_leak_native_memory(times: 10) }
      #   end
      def wont_leak_native_memory(**options) = ctx.refute_native_leaks(**options, &target)

      # See {Assertions#assert_native_allocations}.
      #
      # @return [true]
      # @raise (see Assertions#assert_native_allocations)
      #
      # @example
      #   describe "a list" do
      #     it("is small") { _ { [1, 2] }.must_limit_native_allocations("64 KiB") }
      #   end
      def must_limit_native_allocations(limit, **options)
        ctx.assert_native_allocations(limit, **options, &target)
      end
    end
  end
end
