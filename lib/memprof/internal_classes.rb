# frozen_string_literal: true

module Memprof
  # Names of objects that a program cannot reference: they are in angle brackets, unlike those of classes.
  module InternalClasses
    # Objects in which C functions hide a program's own data, such as the elements of a shared Array.
    DATA = %w[<array> <hash> <object> <string> <struct>].freeze
    FORM = /\A<[^<>]+>\z/
    private_constant :DATA, :FORM

    def self.include?(name) = name.start_with?("<")

    # Whether they are the VM's own: code, caches, environments. Reports for people only sum them up.
    def self.of_vm?(name) = FORM.match?(name) && !DATA.include?(name)
  end
end
