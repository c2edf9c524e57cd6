# frozen_string_literal: true

module Memprof
  # Names of objects that a program cannot refer to: they are in angle brackets, which no class has.
  module InternalClasses
    # What a C function hides of a program's own data, as the elements that a shared Array has.
    DATA = %w[<array> <hash> <object> <string> <struct>].freeze
    FORM = /\A<[^<>]+>\z/
    private_constant :DATA, :FORM

    def self.include?(name) = name.start_with?("<")

    # Whether the VM makes them for itself: code, caches, environments. Reports for people only sum them up.
    def self.of_vm?(name) = FORM.match?(name) && !DATA.include?(name)
  end
end
